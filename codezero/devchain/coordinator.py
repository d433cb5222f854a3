"""The commands of the owner of a chain: deploy the coordinator, set its bootnodes, send money for gas."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from codezero.config import checkout
from codezero.config.multiaddr import Multiaddr
from codezero.devchain import folder
from codezero.devchain.client import ChainClient, checksummed
from codezero.devchain.folder import ChainFolder
from codezero.errors import ChainError
from codezero.ledger.account import ETHER
from codezero.ledger.contract import Contract
from codezero.runtime.console import Console


def connect(path: Path, rpc_url: str | None) -> tuple[ChainFolder, ChainClient]:
    """Returns the chain of a folder, and a client of it as the chain's owner. Raises ChainError."""
    chain = folder.find(path)
    return chain, ChainClient(rpc_url or chain.rpc_url, chain.chain_id, chain.owner())


def open_coordinator(path: Path, rpc_url: str | None) -> tuple[ChainClient, Contract]:
    """Returns a client and the coordinator of a folder's chain. Raises ChainError: none is deployed, among others."""
    chain, client = connect(path, rpc_url)
    address = chain.coordinator()
    if address is None:
        raise ChainError(f"no coordinator is deployed: {checkout.command('chain', 'deploy', '--folder', path)}")
    return client, client.contract("SwarmCoordinator", address)


def deploy(path: Path, rpc_url: str | None, stages: int, console: Console) -> None:
    """Deploys the coordinator unless the chain has it, and prints how nodes use it. Raises ChainError."""
    if stages < 1:
        raise ChainError(f"--stages {stages} is not possible: a round has 1 or more")
    chain, client = connect(path, rpc_url)
    address = chain.coordinator()
    if address is None or not client.has_code(address):
        address = client.deploy("SwarmCoordinator", client.address, stages)
        chain.set_coordinator(address)
        console.line(f"coordinator deployed at {address}, owned by {client.address}")
    else:
        console.line(f"the coordinator is at {address} already, owned by {client.address}")
    console.line(f"use it: ledger=wallet ledger.rpc_url={client.rpc_url} ledger.contract_address={address} \\")
    console.line(f"  ledger.chain_id={chain.chain_id}")
    fund_it = checkout.command("chain", "fund", "ADDRESS", "--folder", path)
    console.line(f"give a node's wallet money for gas: {fund_it}")
    console.line(f"let the rounds advance: {checkout.command('chain', 'tick', '--every', '60s', '--folder', path)}")


def fund(path: Path, rpc_url: str | None, addresses: Sequence[str], amount: str, console: Console) -> None:
    """Sends an amount of coins to each address. Raises ChainError."""
    try:
        wei = Decimal(amount) * ETHER
    except ArithmeticError:
        wei = Decimal(-1)
    if not (wei.is_finite() and 0 < wei <= folder.FUNDS_WEI and wei == wei.to_integral_value()):
        raise ChainError(f"--amount {amount} is not possible: use a number of coins such as 1 or 0.5")
    for address in addresses:
        checksummed(address)
    _, client = connect(path, rpc_url)
    for address in addresses:
        client.transfer(address, int(wei))
        console.line(f"{address} has got {amount} ETH")


def bootnodes(path: Path, rpc_url: str | None) -> list[str]:
    """Returns the coordinator's bootnodes. Raises ChainError."""
    client, contract = open_coordinator(path, rpc_url)
    return list(client.read(contract, "getBootnodes()"))


def add_bootnodes(path: Path, rpc_url: str | None, addresses: Sequence[str], console: Console) -> None:
    """Adds the bootnodes that the coordinator does not have. Raises ChainError: one is no bootnode's address."""
    for text in addresses:
        try:
            named = Multiaddr.parse(text).peer is not None
        except ValueError as error:
            raise ChainError(f"{text} is not an address: {error}") from error
        if not named:
            raise ChainError(f"{text} is not a bootnode: end it with /p2p/ and the peer id")
    client, contract = open_coordinator(path, rpc_url)
    known = client.read(contract, "getBootnodes()")
    new = [text for text in dict.fromkeys(addresses) if text not in known]
    if new:
        client.transact(contract, "addBootnodes(string[])", new)
    console.line(f"{len(new)} added, {len(known) + len(new)} in all")


def clear_bootnodes(path: Path, rpc_url: str | None, console: Console) -> None:
    """Removes all bootnodes of the coordinator. Raises ChainError."""
    client, contract = open_coordinator(path, rpc_url)
    client.transact(contract, "clearBootnodes()")
    console.line("no bootnodes are left")
