"""Where a node's ledger is, noted in its state folder for those who read it while the node runs or after it.

The RPC's URL is part of it, and hosted RPCs carry keys in theirs. Without the URL nobody but the node could read the
chain, and its host alone would not do; so the file is its owner's alone (0600), as a keystore is. Whatever packs up a
state folder for others must leave it out.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from codezero.errors import LedgerError

WHEREABOUTS, LEDGER, OUTBOX = "ledger.json", "ledger.sqlite", "outbox.sqlite"
"""Names in a state folder."""
MAX_BYTES = 1 << 16

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """Of one node's ledger."""

    kind: str
    """local, wallet or modal, as `ledger.kind`."""
    peer_id: str
    path: str = ""
    """Absolute, of a ledger that nodes may share; empty for the one in the state folder."""
    chain_id: int = 0
    contract: str = ""
    """Checksummed; empty without a chain."""
    rpc_url: str = field(default="", repr=False)
    """A secret: may hold a key."""


def note_whereabouts(folder: Path, found: Whereabouts) -> None:
    """Replaces the file whole. A disk that does not take it costs those who read it, not the node."""
    path, temporary = folder / WHEREABOUTS, folder / (WHEREABOUTS + ".tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)  # also where one was left over
            file.write(msgspec.json.format(msgspec.json.encode(found), indent=1))
        os.replace(temporary, path)
    except OSError as error:
        logger.warning(
            "cannot write %s (%s): `codezero status` will not know where the ledger is: free space",
            path,
            error.strerror,
        )


def read_whereabouts(folder: Path) -> Whereabouts | None:
    """None: no node has noted them. Raises LedgerError: the file is damaged or unreadable."""
    path = folder / WHEREABOUTS
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ValueError
        return msgspec.json.decode(raw, type=Whereabouts)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"cannot read {path}: {error.strerror}") from error
    except (msgspec.MsgspecError, ValueError, RecursionError):  # from None: its text may hold the RPC's key
        raise LedgerError(f"{path} is damaged: the node writes it anew when it starts") from None
