"""The location of a node's ledger, kept as a file in its state folder for programs that read the ledger.

The file has the RPC's whole URL, without which nobody but the node could read the chain. The URLs of hosted RPCs hold
keys, so only the file's owner may read it (mode 0600), as a keystore, and archives for others must leave it out.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from codezero.errors import LedgerError
from codezero.ledger.items import LedgerScope
from codezero.runtime.files import replace_file

LOCATION, LEDGER, OUTBOX = "ledger.json", "ledger.sqlite", "outbox.sqlite"
"""File names in a state folder."""
MAX_BYTES = 1 << 16

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLocation:
    """The location of one node's ledger."""

    kind: str
    """`local`, `wallet` or `modal`, as the setting `ledger.kind`."""
    peer_id: str
    path: str = ""
    """The absolute path of a ledger that nodes may share; empty for the one in the state folder."""
    chain_id: int = 0
    contract: str = ""
    """The contract's checksummed address; empty without a chain."""
    rpc_url: str = field(default="", repr=False)
    """The URL of the RPC, a secret since it may hold a key."""

    @property
    def scope(self) -> LedgerScope | None:
        """The contract that the node uses; None without a chain."""
        if not self.contract:
            return None
        return LedgerScope(chain_id=self.chain_id, contract=self.contract, peer_id=self.peer_id)


def write_location(folder: Path, found: LedgerLocation) -> None:
    """Replaces the file in one step. If it cannot be written there is a warning, and the node continues."""
    path = folder / LOCATION
    try:
        replace_file(path, msgspec.json.format(msgspec.json.encode(found), indent=1), private=True)
    except OSError as error:
        logger.warning(
            "cannot write %s (%s): `codezero status` will not know where the ledger is: free space",
            path,
            error.strerror,
        )


def read_location(folder: Path) -> LedgerLocation | None:
    """Reads the file; None if there is none. Raises LedgerError: the file is damaged or unreadable."""
    path = folder / LOCATION
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ValueError
        return msgspec.json.decode(raw, type=LedgerLocation)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"cannot read {path}: {error.strerror}") from error
    except (msgspec.MsgspecError, ValueError, RecursionError):  # from None: its text may hold the RPC's key
        raise LedgerError(f"{path} is damaged: the node writes it anew when it starts") from None
