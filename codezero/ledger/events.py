"""Decodes the events of the SwarmCoordinator from the logs that an RPC gives.

This is not done by eth-abi: peer ids may be any bytes, also no UTF-8, and an RPC can let every element of a list point
at the same megabyte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated

import msgspec
from msgspec import Meta

from codezero.ledger.coordinator import MAX_ROUND
from codezero.ledger.faults import RpcBadReply
from codezero.ledger.http import shown
from codezero.ledger.tally import MAX_PEER_ID, TallyChange

REGISTERED = "PeerRegistered(address,string)"
REWARD = "RewardSubmitted(address,uint256,uint256,int256,string)"
TOTAL = "CumulativeRewardsUpdated(address,string,int256)"
VOTE = "WinnerSubmitted(address,string,uint256,string[])"
EVENTS = (REGISTERED, REWARD, TOTAL, VOTE)
_WORD = 32
"""Bytes in a word of the ABI."""

_Number = Annotated[str, Meta(pattern="^0x[0-9a-fA-F]{1,16}$")]
_Topic = Annotated[str, Meta(pattern="^0x[0-9a-fA-F]{64}$")]


class EventLog(msgspec.Struct, rename="camel"):
    """One log, as an RPC gives it."""

    address: str
    topics: list[_Topic]
    data: Annotated[str, Meta(pattern="^0x([0-9a-fA-F]{2})*$")]
    block_number: _Number
    log_index: _Number
    removed: bool = False


@cache
def topics() -> Mapping[str, str]:
    """Returns the signature of each of EVENTS by its first topic."""
    return {topic(event): event for event in EVENTS}


def topic(event: str) -> str:
    """Returns the first topic of an event's logs, of its signature."""
    from eth_utils.crypto import keccak

    return "0x" + bytes(keccak(text=event)).hex()


def logs(answer: object) -> list[EventLog]:
    """Returns the logs in an answer of eth_getLogs. Raises RpcBadReply: the answer is malformed."""
    try:
        return msgspec.convert(answer, list[EventLog])
    except msgspec.ValidationError as error:
        raise RpcBadReply(f"the RPC sent no logs ({shown(str(error))}): a proxy in between may have sent it") from error


def changes(answer: object, contract: str, first: int, last: int) -> list[TallyChange]:
    """Decodes an answer of eth_getLogs for the blocks `first` to `last`, and returns the changes in the chain's order.
    Raises RpcBadReply: the answer is malformed, or has logs of other blocks or contracts."""
    placed: dict[tuple[int, int], EventLog] = {}
    for log in logs(answer):
        number = int(log.block_number, 16)
        if log.address.lower() != contract.lower() or not first <= number <= last:
            raise RpcBadReply("the RPC sent logs of another contract or block than asked for: it mixes up answers")
        if placed.setdefault((number, int(log.log_index, 16)), log) is not log:
            raise RpcBadReply("the RPC sent a log twice: it mixes up answers")
    try:
        return [change for _, log in sorted(placed.items()) if not log.removed for change in _decoded(log)]
    except (ValueError, IndexError) as error:
        raise RpcBadReply(f"a log of the contract does not decode ({error}): a proxy may have sent it") from error


def _decoded(log: EventLog) -> Sequence[TallyChange]:
    """Decodes one log. Raises ValueError, IndexError: it is malformed."""
    event = topics().get(log.topics[0].lower())
    data, indexed = bytes.fromhex(log.data[2:]), [int(topic, 16) for topic in log.topics[1:]]
    if event == REGISTERED:
        return [TallyChange(peer_id=_text(data, _word(data, 0)))]
    if event == REWARD:
        return [TallyChange(peer_id=_text(data, _word(data, _WORD)), rewards=1, round=_round(indexed[1]))]
    if event == TOTAL:
        total = int.from_bytes(data[_WORD : 2 * _WORD], "big", signed=True)
        return [TallyChange(peer_id=_text(data, _word(data, 0)), total=float(total))]
    if event == VOTE:
        voter = TallyChange(peer_id=_text(data, _word(data, 0)), round=_round(indexed[1]))
        return [voter, *(TallyChange(peer_id=winner, wins=1) for winner in _texts(data, _word(data, _WORD)))]
    raise ValueError("an event that was not asked for")


def _texts(data: bytes, start: int) -> list[str]:
    """Decodes a string[] at an offset. Raises ValueError: its strings together would be longer than the data."""
    count = _word(data, start)
    left = len(data)
    if count * _WORD > left:
        raise ValueError("a list longer than the log")
    found = []
    for index in range(count):
        offset = start + _WORD + _word(data, start + _WORD + index * _WORD)
        left -= _word(data, offset)
        if left < 0:
            raise ValueError("strings longer than the log")
        found.append(_text(data, offset))
    return found


def _text(data: bytes, start: int) -> str:
    """Decodes a string at an offset. One that is too long for a peer id is cut off and ends in its hash."""
    length = _word(data, start)
    raw = data[start + _WORD : start + _WORD + length]
    if len(raw) != length:
        raise ValueError("a string longer than the log")
    text = raw[: 4 * MAX_PEER_ID].decode("utf-8", "replace")
    if len(raw) <= 4 * MAX_PEER_ID and len(text) <= MAX_PEER_ID:
        return text
    return f"{text[: MAX_PEER_ID - 20]}... {hashlib.sha256(raw).hexdigest()[:16]}"


def _word(data: bytes, offset: int) -> int:
    """Returns the word at an offset as an unsigned number. Raises ValueError: the data end before it."""
    word = data[offset : offset + _WORD]
    if len(word) != _WORD:
        raise ValueError("it is cut off")
    return int.from_bytes(word, "big")


def _round(number: int) -> int:
    if number > MAX_ROUND:
        raise ValueError(f"round {number:.4g}")
    return number
