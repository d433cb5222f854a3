"""The folder of a chain.

<folder>/chain.json         its id, and its URL when it last ran
<folder>/accounts.json      the key of the account that has money from the start and owns the coordinator
<folder>/coordinator.json   the address of the coordinator, once it is deployed
<folder>/anvil.json, anvil.previous.json, anvil.log   the chain itself, its copy, and anvil's log
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils.address import is_address

from codezero.config import checkout
from codezero.errors import ChainError, IdentityError, told_as
from codezero.identity.key import write_new
from codezero.ledger.account import ETHER
from codezero.runtime.files import replace_file

FUNDS_WEI = 10_000 * ETHER
"""The money of the owner's account at the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFolder:
    """A chain, as its folder describes it."""

    path: Path
    chain_id: int
    rpc_url: str
    """The URL by which programs on this machine reached it when it last ran."""

    @property
    def coordinator_path(self) -> Path:
        return self.path / "coordinator.json"

    def owner(self) -> LocalAccount:
        """Returns the account with money, made at the first call. Raises ChainError: no access to its key."""
        path = self.path / "accounts.json"
        try:
            if not path.exists():
                made = {"private_keys": ["0x" + secrets.token_hex(32)]}
                write_new(path, json.dumps(made, indent=1).encode() + b"\n")
        except FileExistsError:
            pass
        except IdentityError as error:
            raise ChainError(str(error)) from error
        try:
            owner: LocalAccount = Account.from_key(_read(path)["private_keys"][0])  # the first of ten in 0.1.0
        except (LookupError, TypeError, ValueError) as error:
            raise _damaged(path) from error
        return owner

    def coordinator(self) -> str | None:
        """Returns the coordinator's address; None before it is deployed. Raises ChainError: the file is damaged."""
        if not self.coordinator_path.exists():
            return None
        address = _read(self.coordinator_path).get("contract_address")
        if not is_address(address):
            raise _damaged(self.coordinator_path)
        return str(address)

    def set_coordinator(self, address: str) -> None:
        """Stores the address of the coordinator. Raises ChainError: it cannot be written."""
        _write(self.coordinator_path, {"contract_address": address})


def find(path: Path) -> ChainFolder:
    """Reads the chain of a folder. Raises ChainError: there is none, or it cannot be read."""
    file = path / "chain.json"
    if not file.exists():
        starts = checkout.command("chain", "up", "--folder", path)
        raise ChainError(f"there is no chain in {path}: start one with {starts}")
    content = _read(file)
    try:
        return ChainFolder(path=path, chain_id=int(content["chain_id"]), rpc_url=str(content["rpc_url"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(file) from error


def save(folder: ChainFolder) -> None:
    """Writes chain.json. Raises ChainError: it cannot be written."""
    _write(folder.path / "chain.json", {"chain_id": folder.chain_id, "rpc_url": folder.rpc_url})


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ChainError(f"cannot read {path}: {error}; restore it, or give another --folder") from error
    if not isinstance(content, dict):
        raise _damaged(path)
    return content


def _damaged(path: Path) -> ChainError:
    return ChainError(f"{path} is damaged: restore it, or start another chain in another --folder")


def _write(path: Path, content: dict[str, Any]) -> None:
    with told_as(ChainError, f"cannot write {path}", "give another --folder"):
        replace_file(path, json.dumps(content, indent=1) + "\n")
