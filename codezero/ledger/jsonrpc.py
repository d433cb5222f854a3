"""JSON-RPC 2.0 over HTTP to a server that may be slow, down, or hostile: requests are repeated a limited number of
times, and answers are matched to them by id.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from codezero.ledger.faults import (
    RateLimited,
    RpcBadReply,
    RpcFault,
    RpcRefused,
    RpcServerError,
    RpcUnreachable,
)
from codezero.ledger.http import Server, decode, shown

WAIT_S = 0.25
"""Seconds before the first repeat, plus or minus up to half; each further wait is twice as long."""
RATE_LIMIT_CODES = (429, -32005)
"""Error codes by which servers say that there were too many requests."""

Request = tuple[str, list[Any]]
"""A method and its parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcRefusal:
    """The `error` of one answer: untrusted text, already made printable."""

    code: int
    message: str
    data: str = ""
    """The data of a revert, as hex digits with 0x; empty if there is none."""


Answer = object
"""The `result` of an answer, or a RpcRefusal."""


class JsonRpc:
    """A client of one server. It does not follow redirects."""

    def __init__(self, url: str, *, setting: str = "ledger.rpc_url", timeout_s: float = 10.0, retries: int = 2) -> None:
        """`setting` names the setting of the URL in messages. Raises LedgerError: the URL cannot be used."""
        self._server = Server(url, what="the RPC", setting=setting, timeout_s=timeout_s)
        self.place = self._server.place
        """The server's name for messages, without its path, which may hold a key."""
        self._setting = setting
        self._retries = retries
        self._ids = itertools.count(1)

    def ask(self, requests: Sequence[Request], *, repeat: bool = True) -> list[Answer]:
        """Sends all requests in one HTTP request and returns the answers in their order. Raises RpcFault.

        `repeat=False` sends once: for a request that must not be sent again before its effect is looked up."""
        bodies: list[dict[str, Any]] = [
            {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params} for method, params in requests
        ]
        content = msgspec.json.encode(bodies if len(bodies) > 1 else bodies[0])
        for attempt in itertools.count():
            try:
                return self._match(self._post(content), [body["id"] for body in bodies])
            except (RpcUnreachable, RpcServerError, RpcBadReply):
                if not repeat or attempt == self._retries:
                    raise
            time.sleep(WAIT_S * 2**attempt * random.uniform(0.5, 1.5))
        raise AssertionError("unreachable")

    def _post(self, content: bytes) -> bytes:
        reply = self._server.post(content)
        if reply.status == 429:
            raise self._rate_limited(reply.retry_after_s)
        if reply.status >= 500:
            raise RpcServerError(f"{self.place} answered HTTP {reply.status}: it has failed")
        if reply.status != 200 and (reply.status < 400 or reply.status in (401, 403) or not _has_error(reply.body)):
            raise RpcRefused(
                f"{self.place} answered HTTP {reply.status} {shown(reply.body.decode('utf-8', 'replace'))}: check "
                f"{self._setting} and its key"
            )
        return reply.body

    def _match(self, raw: bytes, ids: Sequence[int]) -> list[Answer]:
        reply: Any
        try:
            reply = decode(raw, object)
        except ValueError as error:
            raise self._bad(str(error)) from error
        if len(ids) == 1:
            reply = [reply]
        elif isinstance(reply, dict) and "error" in reply:  # one error for the whole batch
            refusal = self._answer(reply)
            raise RpcRefused(f"{self.place} refuses a batch of {len(ids)} requests ({refusal}): use another RPC")
        if not isinstance(reply, list) or not all(isinstance(member, dict) for member in reply):
            raise self._bad(f"no answer of JSON-RPC: {shown(raw[:60].decode('utf-8', 'replace'))!r}")
        answers = {member.get("id"): member for member in reply if type(member.get("id")) is int}
        missing = [id_ for id_ in ids if id_ not in answers]
        if missing:
            raise self._bad(f"no answer to request {missing[0]}, or another's")
        return [self._answer(answers[id_]) for id_ in ids]

    def _answer(self, member: Mapping[str, Any]) -> Answer:
        error = member.get("error")
        if error is None:
            return member.get("result")
        if not isinstance(error, dict):
            error = {"message": str(error)}
        code, data = error.get("code"), error.get("data")
        if isinstance(data, dict):  # some servers put the data into an object
            data = data.get("data")
        refusal = RpcRefusal(
            code=code if isinstance(code, int) else 0,
            message=shown(str(error.get("message", ""))),
            data=data if isinstance(data, str) and data.startswith("0x") and data.isalnum() and data.isascii() else "",
        )
        if refusal.code in RATE_LIMIT_CODES:
            raise self._rate_limited(None)
        return refusal

    def _bad(self, what: str) -> RpcFault:
        return RpcBadReply(f"{self.place} sent {what}: a proxy in between may have answered")

    def _rate_limited(self, retry_after_s: float | None) -> RateLimited:
        wait = "later" if retry_after_s is None else f"in {retry_after_s:.0f} s"
        return RateLimited(f"{self.place} limits the rate of requests; asked again {wait}", retry_after_s)


def _has_error(raw: bytes) -> bool:
    """Returns True if the body has errors of JSON-RPC, which some servers send with HTTP 400 or 413."""
    try:
        reply: Any = decode(raw, object)
    except ValueError:
        return False
    return isinstance(reply, list) or (isinstance(reply, dict) and isinstance(reply.get("error"), dict))
