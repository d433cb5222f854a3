"""Encodes and decodes the records that nodes exchange, in the native format and in that of GenRL 0.3.0.

All input is untrusted. The readers raise WireError and nothing else, whatever bytes they are given.
"""

from __future__ import annotations

from codezero.network.wire.announcement import PROPOSALS as PROPOSALS
from codezero.network.wire.announcement import ROLLOUTS as ROLLOUTS
from codezero.network.wire.announcement import VERSION as VERSION
from codezero.network.wire.announcement import Announcement as Announcement
from codezero.network.wire.announcement import feedback_to as feedback_to
from codezero.network.wire.announcement import read_announcement as read_announcement
from codezero.network.wire.announcement import sign_announcement as sign_announcement
from codezero.network.wire.codec import Reason as Reason
from codezero.network.wire.codec import WireError as WireError
from codezero.network.wire.fitting import fit as fit
from codezero.network.wire.genrl import GenrlRecord as GenrlRecord
from codezero.network.wire.genrl import pack_genrl as pack_genrl
from codezero.network.wire.genrl import read_genrl as read_genrl
from codezero.network.wire.genrl_proposals import PROPOSER_KEY as PROPOSER_KEY
from codezero.network.wire.genrl_proposals import SOLVER_KEY as SOLVER_KEY
from codezero.network.wire.genrl_proposals import genrl_name as genrl_name
from codezero.network.wire.genrl_proposals import pack_genrl_feedback as pack_genrl_feedback
from codezero.network.wire.genrl_proposals import pack_genrl_proposals as pack_genrl_proposals
from codezero.network.wire.genrl_proposals import read_genrl_feedback as read_genrl_feedback
from codezero.network.wire.genrl_proposals import read_genrl_proposals as read_genrl_proposals
from codezero.network.wire.native import pack_groups as pack_groups
from codezero.network.wire.native import unpack_groups as unpack_groups
from codezero.network.wire.proposals import MAX_PROPOSALS as MAX_PROPOSALS
from codezero.network.wire.proposals import MAX_RESULTS as MAX_RESULTS
from codezero.network.wire.proposals import AttemptResults as AttemptResults
from codezero.network.wire.proposals import pack_feedback as pack_feedback
from codezero.network.wire.proposals import pack_proposals as pack_proposals
from codezero.network.wire.proposals import unpack_feedback as unpack_feedback
from codezero.network.wire.proposals import unpack_proposals as unpack_proposals
