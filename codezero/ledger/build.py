"""Makes the ledger that the configuration names, and reads the bootnodes of a contract before a node joins."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from codezero.config import PASSPHRASE_ENV, LedgerConfig, LedgerKind, NodeConfig, SwarmConfig
from codezero.config.multiaddr import Multiaddr
from codezero.errors import LedgerError, told_as
from codezero.ledger.local import LocalLedger
from codezero.ledger.location import LEDGER, OUTBOX, LedgerLocation, write_location
from codezero.runtime.amounts import counted
from codezero.runtime.console import Console

if TYPE_CHECKING:
    from codezero.ledger.chain import ChainLedger
    from codezero.ledger.contract import Contract
    from codezero.ledger.coordinator import Coordinator, CoordinatorWriter
    from codezero.ledger.rpc import Rpc

logger = logging.getLogger(__name__)

MAX_BOOTNODES = 16
"""The most bootnodes taken from a contract: the first ones with a usable address."""


def load_key(config: LedgerConfig) -> bytes | None:
    """Returns the account's key, asking for its passphrase if no file or variable has it; None for a ledger without a
    key. Removes the variable, which child processes would inherit. Raises LedgerError: the keystore does not open."""
    if config.kind is not LedgerKind.wallet:
        return None
    from codezero.ledger import keystore

    passphrase = keystore.passphrase(config.passphrase_file)
    os.environ.pop(PASSPHRASE_ENV, None)
    return keystore.load(Path(config.keystore).expanduser(), passphrase)


def make_ledger(
    config: NodeConfig, key: bytes | None, folder: Path, peer_id: str, console: Console, stack: ExitStack
) -> LocalLedger | ChainLedger:
    """Returns the node's ledger, which `stack` closes. `key` comes from `load_key`.

    Raises LedgerError: a file, the chain or the contract cannot be used. IdentityError: the peer id is registered to
    another account.
    """
    path = _local_path(config.ledger, folder)
    local = LocalLedger(path, peer_id, config.swarm.banned_peers, config.ledger.round_s, config.swarm.vote)
    shared = str(path.absolute()) if config.ledger.path else ""
    found = LedgerLocation(kind=config.ledger.kind.value, peer_id=peer_id, path=shared)
    if config.ledger.kind is LedgerKind.local:
        stack.callback(local.close)
        write_location(folder, found)
        return local
    ledger, contract = _on_chain(config.ledger, key, local, folder / OUTBOX, peer_id, console)
    stack.callback(ledger.close)
    on_chain = replace(found, chain_id=config.ledger.chain_id, contract=contract, rpc_url=config.ledger.rpc_url)
    write_location(folder, on_chain)
    return ledger


def _local_path(config: LedgerConfig, folder: Path) -> Path:
    """Returns the path of the ledger file. Raises LedgerError: its folder cannot be made."""
    if not config.path:
        return folder / LEDGER
    path = Path(config.path).expanduser()
    with told_as(LedgerError, f"cannot make the folder of ledger.path={path}", "give another place"):
        path.parent.mkdir(parents=True, exist_ok=True)
    return path


def with_contract_bootnodes(swarm: SwarmConfig, ledger: LedgerConfig, console: Console) -> SwarmConfig:
    """Returns the swarm's settings with the contract's bootnodes added, if there is a contract and it answers."""
    if ledger.kind is LedgerKind.local or not ledger.bootnodes:
        return swarm
    from codezero.ledger.coordinator import Coordinator

    try:
        named = Coordinator(*_contract(ledger)).bootnodes()
    except LedgerError as error:
        logger.warning(
            "the contract's bootnodes are not known: %s. Those of swarm.bootnodes are used; the next start asks again",
            error,
        )
        return swarm
    found = list(dict.fromkeys([*swarm.bootnodes, *_usable(named)]))
    more = len(found) - len(swarm.bootnodes)
    if more:
        console.line(f"swarm: {counted(more, 'bootnode')} from the contract")
    return replace(swarm, bootnodes=found)


def _usable(addresses: Sequence[str]) -> list[str]:
    """Returns the addresses that a node can dial; the contract's managers may have written anything."""
    found = []
    for text in addresses:
        try:
            address = Multiaddr.parse(text)
        except ValueError as error:
            logger.warning("a bootnode of the contract is left out: %s. Only its owner can correct it", error)
            continue
        if address.peer is not None:
            found.append(str(address))
    return found[:MAX_BOOTNODES]


def _on_chain(
    config: LedgerConfig, key: bytes | None, local: LocalLedger, outbox_path: Path, peer_id: str, console: Console
) -> tuple[ChainLedger, str]:
    """Returns the ledger and the contract's address."""
    from codezero.ledger.account import ether
    from codezero.ledger.chain import ChainLedger
    from codezero.ledger.items import LedgerScope
    from codezero.ledger.outbox import Outbox
    from codezero.ledger.submitter import Submitter

    coordinator, writer = _connected(config, key)
    scope = LedgerScope(chain_id=config.chain_id, contract=coordinator.address, peer_id=peer_id)
    submitter = Submitter(Outbox(outbox_path, scope), coordinator, writer, config)
    submitter.start()
    how = f" through {config.proxy_url}" if config.kind is LedgerKind.modal else ""
    if submitter.view is None:
        how += ", which does not answer now"
    elif config.kind is LedgerKind.wallet:
        how = f", balance {ether(submitter.view.balance_wei)} ETH"
    console.line(f"ledger: {scope.contract} on chain {scope.chain_id}, as {writer.address}{how}")
    return ChainLedger(local, submitter, config.patience_s), scope.contract


def _connected(config: LedgerConfig, key: bytes | None) -> tuple[Coordinator, CoordinatorWriter]:
    """Returns a reader and a writer of the contract, without a request. Raises LedgerError: an address or URL is not
    valid, or nobody has signed in."""
    from codezero.ledger.account import Account
    from codezero.ledger.coordinator import Coordinator, CoordinatorWriter
    from codezero.ledger.modal import app_account

    contract, rpc = _contract(config)
    if config.kind is LedgerKind.modal:
        app = app_account(
            proxy_url=config.proxy_url,
            org_id=config.org_id,
            account_address=config.account_address,
            login_dir=Path(config.login_dir).expanduser(),
        )
        return Coordinator(contract, rpc), CoordinatorWriter(contract, app)
    assert key is not None
    return Coordinator(contract, rpc), CoordinatorWriter(contract, Account(key, rpc, max_fee_gwei=config.max_fee_gwei))


def _contract(config: LedgerConfig) -> tuple[Contract, Rpc]:
    from codezero.ledger.rpc import open_contract

    return open_contract("SwarmCoordinator", config.contract_address, rpc_url=config.rpc_url, chain_id=config.chain_id)
