"""What goes over the wire: bytes to records and back, in the node's own format and in that of GenRL 0.3.0.

Everything read here is untrusted. The readers raise WireError and nothing else, whatever they are given.
"""

from __future__ import annotations

from codezero.network.wire.announcement import (
    MAX_ANNOUNCEMENT_BYTES,
    VERSION,
    Announcement,
    read_announcement,
    sign_announcement,
)
from codezero.network.wire.codec import MAX_GROUPS, MAX_RECORD_BYTES, MAX_TEXT_CHARS, Reason, WireError
from codezero.network.wire.genrl import GenrlRecord, pack_genrl, read_genrl
from codezero.network.wire.native import MAX_BODY_BYTES, pack_groups, unpack_groups

__all__ = [
    "MAX_ANNOUNCEMENT_BYTES",
    "MAX_BODY_BYTES",
    "MAX_GROUPS",
    "MAX_RECORD_BYTES",
    "MAX_TEXT_CHARS",
    "VERSION",
    "Announcement",
    "GenrlRecord",
    "Reason",
    "WireError",
    "pack_genrl",
    "pack_groups",
    "read_announcement",
    "read_genrl",
    "sign_announcement",
    "unpack_groups",
]
