"""Proposals and feedback in the format of GenRL 0.3.0: unsigned lists of msgpack maps.

Its solvers name a proposal by the model's raw answer, cut to `MAX_NAME_CHARS` characters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal, TypeVar

from msgspec import Meta, Raw, Struct
from msgspec.msgpack import Decoder

from codezero.network.wire.codec import (
    MAX_GROUPS,
    MAX_RECORD_BYTES,
    MAX_TEXT_CHARS,
    ModelId,
    Reason,
    Text,
    WireError,
    convert_each,
    decode,
    encode,
    sized,
)
from codezero.network.wire.proposals import MAX_PROPOSALS, MAX_RESULTS, AttemptResults, Filled, Score
from codezero.proposals import Proposal

PROPOSER_KEY, SOLVER_KEY = b"proposer", b"solver"
"""DHT keys of all proposals and of all feedback. They are bytes, which hivemind hashes as they are."""
MAX_NAME_CHARS = 2000
"""The length to which GenRL's solvers cut question, tests and raw text."""
MAX_SENT = 4096
"""The most entries of a list; a longer one is not read at all."""
PASS_REWARD = 0.5
"""The reward from which on a GenRL solver's attempt counts as correct: rewards are at most 0.2 away from 1 or 0."""

_T = TypeVar("_T")


# Other fields in these maps of GenRL's nodes are ignored.


class _Proposal(Struct):
    proposal_question: Filled
    proposal_tests: Filled | Annotated[list[Text], Meta(min_length=1, max_length=MAX_GROUPS)]
    """The proposer's model's answer under "tests"."""
    proposer_model: ModelId = ""
    proposal_raw: Text = ""


class _AttemptResults(Struct):
    proposal_raw: Filled
    reward: Annotated[list[Score], Meta(min_length=1, max_length=MAX_GROUPS)]
    dataset: Literal["proposer"]


_LIST = Decoder(Annotated[list[Raw], Meta(max_length=MAX_SENT)])
_PROPOSAL, _RESULTS = Decoder(_Proposal), Decoder(_AttemptResults)


def genrl_name(raw: str) -> str:
    """Returns the name of a proposal in feedback; empty for one without raw text."""
    return raw[:MAX_NAME_CHARS]


def pack_genrl_proposals(proposals: Sequence[Proposal]) -> bytes:
    """Encodes proposals as GenRL does. GenRL's solvers use only the first one. Raises WireError: the record is too
    large, or cannot be encoded."""
    return _pack(
        [
            {
                "proposer_model": proposal.model_id,
                "proposal_question": proposal.question,
                "proposal_tests": proposal.tests,
                "proposal_raw": proposal.raw,
            }
            for proposal in proposals
        ],
        MAX_PROPOSALS,
        _to_proposal,
    )


def read_genrl_proposals(raw: bytes, peer_id: str) -> tuple[tuple[Proposal, ...], tuple[Reason, ...]]:
    """Returns the proposals in a record, and a reason for each that was dropped; `peer_id` is not in the record. Raises
    WireError: the record as a whole cannot be read."""
    found, dropped = _read(raw, MAX_PROPOSALS, _to_proposal)
    return tuple(
        Proposal(peer_id=peer_id, model_id=model, question=question, tests=tests, raw=text)
        for model, question, tests, text in found
    ), dropped


def pack_genrl_feedback(feedback: Sequence[AttemptResults]) -> bytes:
    """Encodes feedback as GenRL does, without probabilities. Raises WireError: the record is too large, or other nodes
    would refuse it."""
    return _pack(
        [{"proposal_raw": one.name, "reward": one.rewards, "dataset": "proposer"} for one in feedback],
        MAX_RESULTS,
        _to_results,
    )


def read_genrl_feedback(raw: bytes) -> tuple[tuple[AttemptResults, ...], tuple[Reason, ...]]:
    """Returns the feedback in a record, on proposals of any peer, and a reason for each that was dropped. Of two on the
    same proposal the first counts. Raises WireError: the record as a whole cannot be read."""
    found, dropped = _read(raw, MAX_RESULTS, _to_results)
    first: dict[str, AttemptResults] = {}
    for one in found:
        first.setdefault(one.name, one)
    return tuple(first.values()), (*dropped, *[Reason.DUPLICATE] * (len(found) - len(first)))


def _pack(entries: Sequence[object], limit: int, convert: Callable[[bytes], object]) -> bytes:
    if len(entries) > limit:
        raise WireError(Reason.OVERSIZED, f"{len(entries)} entries, {limit} are allowed")
    for entry in entries:
        convert(encode(entry))
    return sized(encode(entries), MAX_RECORD_BYTES)


def _read(raw: bytes, limit: int, convert: Callable[[bytes | Raw], _T]) -> tuple[tuple[_T, ...], tuple[Reason, ...]]:
    """Returns the first `limit` entries of a list that can be converted, and a reason for each other entry."""
    entries = decode(_LIST, sized(raw, MAX_RECORD_BYTES))
    found, dropped = convert_each(entries[:limit], convert)
    return found, (*[Reason.OVERSIZED] * (len(entries) - limit), *dropped)


def _to_proposal(entry: bytes | Raw) -> tuple[str, str, str, str]:
    """Returns model, question, tests (one per line) and raw text."""
    sent = decode(_PROPOSAL, entry)
    tests = sent.proposal_tests if isinstance(sent.proposal_tests, str) else "\n".join(sent.proposal_tests)
    if not 1 <= len(tests) <= MAX_TEXT_CHARS:
        raise WireError(Reason.MALFORMED, f"{len(tests)} characters of tests, 1 to {MAX_TEXT_CHARS} are allowed")
    return sent.proposer_model, sent.proposal_question, tests, sent.proposal_raw


def _to_results(entry: bytes | Raw) -> AttemptResults:
    sent = decode(_RESULTS, entry)
    return AttemptResults(
        name=genrl_name(sent.proposal_raw),
        p_correct=tuple(float(reward >= PASS_REWARD) for reward in sent.reward),
        rewards=tuple(sent.reward),
    )
