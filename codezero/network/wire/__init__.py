"""Encodes and decodes the records that nodes exchange, in the native format and in that of GenRL 0.3.0.

All input is untrusted. The readers raise WireError and nothing else, whatever they are given.
"""

from __future__ import annotations

from codezero.network.wire.announcement import (
    MAX_ANNOUNCEMENT_BYTES,
    PROPOSALS,
    ROLLOUTS,
    VERSION,
    Announcement,
    feedback_to,
    read_announcement,
    sign_announcement,
)
from codezero.network.wire.body import MAX_BODY_BYTES
from codezero.network.wire.codec import MAX_GROUPS, MAX_RECORD_BYTES, MAX_TEXT_CHARS, Reason, WireError
from codezero.network.wire.fitting import fit
from codezero.network.wire.genrl import GenrlRecord, pack_genrl, read_genrl
from codezero.network.wire.genrl_proposals import (
    PROPOSER_KEY,
    SOLVER_KEY,
    genrl_name,
    pack_genrl_feedback,
    pack_genrl_proposals,
    read_genrl_feedback,
    read_genrl_proposals,
)
from codezero.network.wire.native import pack_groups, unpack_groups
from codezero.network.wire.proposals import (
    MAX_MARKS,
    MAX_PROPOSALS,
    Marks,
    pack_feedback,
    pack_proposals,
    unpack_feedback,
    unpack_proposals,
)

__all__ = [
    "MAX_ANNOUNCEMENT_BYTES",
    "MAX_BODY_BYTES",
    "MAX_GROUPS",
    "MAX_MARKS",
    "MAX_PROPOSALS",
    "MAX_RECORD_BYTES",
    "MAX_TEXT_CHARS",
    "PROPOSALS",
    "PROPOSER_KEY",
    "ROLLOUTS",
    "SOLVER_KEY",
    "VERSION",
    "Announcement",
    "GenrlRecord",
    "Marks",
    "Reason",
    "WireError",
    "feedback_to",
    "fit",
    "genrl_name",
    "pack_feedback",
    "pack_genrl",
    "pack_genrl_feedback",
    "pack_genrl_proposals",
    "pack_groups",
    "pack_proposals",
    "read_announcement",
    "read_genrl",
    "read_genrl_feedback",
    "read_genrl_proposals",
    "sign_announcement",
    "unpack_feedback",
    "unpack_groups",
    "unpack_proposals",
]
