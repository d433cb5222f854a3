"""Checks of the chain, its contracts, and the node's account and registration there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from codezero.config import LedgerConfig, LedgerKind
from codezero.doctor import bootnodes, reach
from codezero.doctor import identity as keys
from codezero.doctor.case import Case
from codezero.doctor.finding import Finding, error, info, ok, warning
from codezero.errors import LedgerError
from codezero.identity.names import animal_name

TIMEOUT_S = 4.0
_NOBODY = "0x" + "00" * 20


def check(case: Case) -> Iterator[Finding]:
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
        what, _, do = str(fault).partition("; ")
        name, _, rest = what.partition(": ")
        yield error("account", what, "no node can start", do or rest or name)
    why = reach.look(case, "RPC", config.rpc_url)
    if why is not None:
        yield _away(f"the RPC is not reached: {why}")
        return
    try:
        yield from _on_chain(case, account)
    except (WrongChain, NoContract) as fault:
        yield error(
            "chain",
            str(fault),
            "a node signs nothing there",
            "correct ledger.rpc_url, ledger.chain_id, or ledger.contract_address",
        )
    except RpcFault as fault:
        yield _away(str(fault))
    except LedgerError as fault:
        yield error("chain", str(fault), "no node can start", "correct the setting that is named")


def _away(found: str) -> Finding:
    means = "rewards wait in state/outbox.sqlite and training goes on; after ledger.patience_s the round is guessed"
    return warning("chain", found, means, "see to the connection, or name another RPC of this chain in ledger.rpc_url")


def _on_chain(case: Case, account: str) -> Iterator[Finding]:
    from codezero.ledger.account import ether
    from codezero.ledger.contract import Contract, checksummed
    from codezero.ledger.coordinator import Coordinator, coordinator_abi
    from codezero.ledger.jsonrpc import JsonRpc
    from codezero.ledger.rpc import Rpc

    config, market = case.config.ledger, case.config.market
    identity = keys.load(case)
    try:
        contract = Contract(checksummed(config.contract_address), coordinator_abi())
        others = [checksummed(market.contract_address)] if market.enabled else []
    except ValueError as fault:
        yield error("chain", f"a contract's address: {fault}", "no node can start", "correct ledger.contract_address")
        return
    transport = JsonRpc(config.rpc_url, timeout_s=TIMEOUT_S, retries=0)
    rpc = Rpc(transport, chain_id=config.chain_id, contracts=[contract.address], error_names=contract.error_names)
    view = Coordinator(contract, rpc).view(identity.peer_id if identity else "", account or _NOBODY)
    yield ok(
        "chain", f"{transport.place}: chain {config.chain_id}, {contract.address} is at round {view.round_id.number}"
    )
    if others:
        setting = "market.contract_address"
        Rpc(transport, chain_id=config.chain_id, contracts=others, contract_setting=setting).ask([])
        yield ok("market", f"there is a contract at {others[0]}")
    if account and config.warn_below_eth and view.balance_wei < config.warn_below_eth * 10**18:
        yield warning(
            "account",
            f"{account} holds {ether(view.balance_wei)} ETH",
            "it cannot pay for much longer; rewards then wait",
            f"send it some, or set ledger.warn_below_eth below {config.warn_below_eth:g}",
        )
    elif account:
        yield ok("account", f"{account} holds {ether(view.balance_wei)} ETH")
    if identity is not None and account:
        yield _registration(identity.peer_id, view.owner, account)
        yield info("earned", f"{view.total_reward} points and {view.total_wins} votes on the chain so far")
    if config.bootnodes and view.bootnodes:
        yield from bootnodes.dialled(view.bootnodes[:16], "the contract")


def _registration(peer_id: str, owner: str | None, account: str) -> Finding:
    name = f"peer {peer_id} ({animal_name(peer_id)})"
    if owner is None:
        return info("registration", f"{name} is not registered yet", "the node registers it to its account at start")
    if owner == account:
        return ok("registration", f"{name} is registered to {owner}")
    return error(
        "registration",
        f"{name} is registered to {owner}, and this node's account is {account}",
        "the contract keeps a peer with its first account, so this one can earn nothing with it",
        "use that account's wallet or sign-in, or become a new peer with swarm.identity_path=new.pem",
    )


def _account(config: LedgerConfig) -> str:
    """Returns the address of the account that will own the peer. Raises LedgerError: there is none."""
    if config.kind is LedgerKind.wallet:
        from codezero.ledger import keystore

        return keystore.address(Path(config.keystore).expanduser())
    from codezero.ledger import modal

    login_dir = Path(config.login_dir).expanduser()
    org_id = config.org_id or modal.only_user(login_dir)
    return config.account_address or modal.smart_account(login_dir, org_id)
