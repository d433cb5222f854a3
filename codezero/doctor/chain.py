"""Checks of the chain, its contracts, the node's account there, and of what signs for it: sign-in app or wallet."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from codezero.config import PASSPHRASE_ENV, LedgerConfig, LedgerKind, checkout
from codezero.config.multiaddr import is_loopback
from codezero.doctor import identity as keys
from codezero.doctor import reach, swarm
from codezero.doctor.case import ExaminedNode
from codezero.doctor.finding import Finding, error, info, ok, refusal, warning
from codezero.errors import ConfigError, LedgerError
from codezero.identity.names import animal_name
from codezero.runtime.amounts import span

_NOBODY = "0x" + "00" * 20
_SOON_S = 7 * 86400
_DEADLINE_AT = 2 + 2 * (1 + 32 + 4 + 21)
"""The index of the deadline in the sign-in app's digest (modal-login/lib/deferred.ts): 6 bytes in hex, 0 for none."""


def check_chain(case: ExaminedNode) -> Iterator[Finding]:
    """Makes only the calls that a node makes, so a server that refuses others, such as web3_clientVersion, passes."""
    config = case.config.ledger
    if config.kind is LedgerKind.local:
        yield info("chain", "none: rewards are kept in a file")
        return
    from codezero.ledger.faults import NoContract, RpcFault, WrongChain

    account = ""
    try:
        account = _account(config)
    except LedgerError as fault:
        yield refusal("account", fault)
    why = reach.why_unreachable(case, "RPC", config.rpc_url)
    if why is not None:
        yield _away(case, f"the RPC is not reached: {why}")
        return
    try:
        yield from _on_chain(case, account)
    except (WrongChain, NoContract) as fault:
        do = "correct ledger.rpc_url, ledger.chain_id, or ledger.contract_address"
        yield error("chain", str(fault), "a node signs nothing there", do)
    except RpcFault as fault:
        yield _away(case, str(fault))
    except LedgerError as fault:
        yield refusal("chain", fault)


def _away(case: ExaminedNode, found: str) -> Finding:
    file = case.state_dir / "outbox.sqlite"
    means = f"rewards wait in {file} and training continues; after ledger.patience_s the round is guessed"
    return warning("chain", found, means, "check the connection, or name another RPC of this chain in ledger.rpc_url")


def _on_chain(case: ExaminedNode, account: str) -> Iterator[Finding]:
    from codezero.ledger.account import ETHER, ether
    from codezero.ledger.coordinator import Coordinator
    from codezero.ledger.rpc import open_contract

    config, market = case.config.ledger, case.config.market
    identity = keys.load(case)
    peer_id = identity.peer_id if identity else ""
    opened = partial(
        open_contract, rpc_url=config.rpc_url, chain_id=config.chain_id, timeout_s=reach.TIMEOUT_S, retries=0
    )
    coordinator = Coordinator(*opened("SwarmCoordinator", config.contract_address))
    view = coordinator.view(peer_id, account or _NOBODY)
    where = f"the RPC at {urlsplit(config.rpc_url).netloc}: chain {config.chain_id}"
    yield ok("chain", f"{where}, {coordinator.address} is at round {view.round_id.number}")
    if market.enabled:
        contract, rpc = opened("PredictionMarket", market.contract_address, setting="market.contract_address")
        rpc.ask([])
        yield ok("market", f"there is a contract at {contract.address}")
    if account and config.warn_below_eth and view.balance_wei < config.warn_below_eth * ETHER:
        means = "it cannot pay for much longer; rewards then wait"
        do = f"send it some, or set ledger.warn_below_eth below {config.warn_below_eth:g}"
        yield warning("account", f"{account} holds {ether(view.balance_wei)} ETH", means, do)
    elif account:
        yield ok("account", f"{account} holds {ether(view.balance_wei)} ETH")
    if peer_id and account:
        yield _registration(peer_id, view.owner, account)
        yield info("earned", "{} points and {} votes on the chain so far".format(*coordinator.earned(peer_id)))
    if config.bootnodes and (bootnodes := coordinator.bootnodes()):
        yield from swarm.dialled(bootnodes[:16], "the contract")


def _registration(peer_id: str, owner: str | None, account: str) -> Finding:
    name = f"peer {peer_id} ({animal_name(peer_id)})"
    if owner is None:
        return info("registration", f"{name} is not registered yet", "the node registers it to its account at start")
    if owner == account:
        return ok("registration", f"{name} is registered to {owner}")
    means = "the contract keeps a peer with its first account, so this one can earn nothing with it"
    do = "use that account's wallet or sign-in, or become a new peer with swarm.identity_path=new.pem"
    return error("registration", f"{name} is registered to {owner}, and this node's account is {account}", means, do)


def _account(config: LedgerConfig) -> str:
    """Returns the address of the account that will own the peer. Raises LedgerError: there is none."""
    if config.kind is LedgerKind.wallet:
        from codezero.ledger import keystore

        return keystore.address(Path(config.keystore).expanduser())
    from codezero.ledger import modal

    return modal.app_account(
        proxy_url=config.proxy_url,
        org_id=config.org_id,
        account_address=config.account_address,
        login_dir=Path(config.login_dir).expanduser(),
    ).address


def check_sign_in(case: ExaminedNode) -> Iterator[Finding]:
    config = case.config.ledger
    if config.kind is LedgerKind.wallet:
        yield from _passphrase(case)
    if config.kind is LedgerKind.modal:
        yield from _app(case, config.proxy_url)
        yield from _session(config)


def _passphrase(case: ExaminedNode) -> Iterator[Finding]:
    file = case.config.ledger.passphrase_file
    if file is not None and not os.access(Path(file).expanduser(), os.R_OK):
        yield error("passphrase", f"{file} cannot be read", "no node can start", "correct ledger.passphrase_file")
    elif file is None and PASSPHRASE_ENV not in case.environment:
        means = "a node asks for it on its terminal, and without one it does not start"
        yield info("passphrase", f"neither {PASSPHRASE_ENV} nor ledger.passphrase_file is set", means)
    else:
        yield ok("passphrase", f"from {file or PASSPHRASE_ENV}; whether it opens the wallet shows at the start")


def _app(case: ExaminedNode, url: str) -> Iterator[Finding]:
    from codezero.launch.app import alchemy

    parts = urlsplit(url)
    why = reach.why_unreachable(case, "sign-in app", url.rstrip("/") + "/api/health")
    if why is not None:
        do = f"{checkout.START} starts it with the node; if it is elsewhere, check it and ledger.proxy_url"
        yield warning("sign-in app", why, "rewards wait until it answers", do)
        return
    if not is_loopback(parts.hostname or ""):
        yield ok("sign-in app", f"{parts.hostname} answers")
        return
    port = parts.port or 80
    try:
        state = alchemy(port)
    except ConfigError as fault:
        yield refusal("sign-in app", fault, "the app cannot start, so nobody can sign in")
        return
    if state == "reachable":
        yield ok("sign-in app", f"it answers on port {port}, and reaches Alchemy")
    else:
        found = f"it answers on port {port}: Alchemy is {state or 'not known'}"
        do = "check the connection and ALCHEMY_API_KEY; a local wallet needs neither (--sign-in wallet)"
        yield warning("sign-in app", found, "nobody can sign in, and nothing is sent; who has signed in stays so", do)


def _session(config: LedgerConfig) -> Iterator[Finding]:
    """Reports when the session key that the app signs with expires, by the app's file; the private key is not read."""
    from codezero.ledger import modal

    try:
        found = modal.session_keys(Path(config.login_dir).expanduser())
    except LedgerError as fault:
        # Where there is no file nobody has signed in here, which the finding `account` reports.
        if not isinstance(fault.__cause__, FileNotFoundError):
            yield refusal("session key", fault, "the app signs nothing")
        return
    for org_id, saved in found.items():
        if config.org_id and org_id != config.org_id:
            continue
        left_s = next((deadline_s(key.deferred_action_digest) for key in reversed(saved) if key.activated), 0.0)
        left_s -= time.time() if left_s else 0.0
        if left_s < 0:
            means = "the app refuses to send anything; rewards wait"
            do = "sign in again at the app, with the same email or passkey"
            yield warning("session key", f"it expired {span(-left_s)} ago", means, do)
        elif 0 < left_s < _SOON_S:
            do = "sign in again at the app before then"
            yield warning("session key", f"it expires in {span(left_s)}", "after that rewards wait", do)
        elif left_s:
            yield ok("session key", f"it holds for another {span(left_s)}")


def deadline_s(digest: str) -> float:
    """Returns the Unix time at which a session key expires; 0 for one without a deadline, and for an invalid digest."""
    found = digest[_DEADLINE_AT : _DEADLINE_AT + 12]
    return float(int(found, 16)) if re.fullmatch("[0-9a-fA-F]{12}", found) else 0.0
