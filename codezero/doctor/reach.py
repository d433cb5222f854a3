"""Checks whether servers answer, and notes the times they report; checks the hub and the package index."""

from __future__ import annotations

import datetime
import email.utils
import ipaddress
import socket
import ssl
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import msgspec

from codezero.doctor.case import Case
from codezero.doctor.finding import Finding, error, info, ok, warning
from codezero.errors import ConfigError
from codezero.llm import catalogue, store
from codezero.llm.store import ModelState
from codezero.publish.tokens import take_tokens

TIMEOUT_S = 4.0
"""The limit for each step of a connection, and between two bytes, in seconds."""
DEFAULT_HUB, DEFAULT_INDEX = "https://huggingface.co", "https://pypi.org/simple/"


class _AccessToken(msgspec.Struct):
    role: str = ""


class _Auth(msgspec.Struct, rename="camel"):
    access_token: _AccessToken = msgspec.field(default_factory=_AccessToken)


class _WhoAmI(msgspec.Struct):
    auth: _Auth = msgspec.field(default_factory=_Auth)


def look(case: Case, who: str, url: str) -> str | None:
    """Returns why no server answers HTTP at the URL, or None if one does, whatever its answer. Adds the server's time
    to `case.skews`. Only the host of the URL is shown: the rest may be a key."""
    host = urlsplit(url).hostname or ""
    if not host:
        return "its URL has no host"
    try:
        with (
            httpx2.Client(timeout=TIMEOUT_S, follow_redirects=False, trust_env=not is_loopback(host)) as client,
            client.stream("GET", url) as response,
        ):
            told = response.headers.get("date", "")
            age = response.headers.get("age", "0")
    except httpx2.HTTPError as fault:
        return _why(host, fault)
    except (OSError, ValueError, httpx2.InvalidURL) as fault:
        return f"{type(fault).__name__} for {host}"
    skew = skew_of(told, age, time.time())
    if skew is not None:
        case.skews.append((f"{who} at {host}", skew))
    return None


def skew_of(told: str, age: str, now_s: float) -> float | None:
    """Returns the seconds by which a Date header (RFC 9110, 6.6.1) is ahead of `now_s`, or None if it is not valid. The
    header is in whole seconds; `age` is the Age header of a cache: the seconds since the date was right."""
    try:
        when = email.utils.parsedate_to_datetime(told)
        if when.tzinfo is None:
            when = when.replace(tzinfo=datetime.timezone.utc)
        return when.timestamp() + 0.5 + (int(age) if age.isascii() and age.isdigit() and len(age) < 9 else 0) - now_s
    except (ValueError, TypeError, OverflowError):
        return None


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _why(host: str, fault: Exception) -> str:
    causes: list[BaseException] = []
    cause: BaseException | None = fault
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return f"the name {host} is not found (DNS)"
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return f"{host} shows no valid certificate: a proxy in between, or a wrong clock"
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return f"{host} refuses the connection: nothing listens there"
    if isinstance(fault, httpx2.TimeoutException):
        return f"{host} does not answer within {TIMEOUT_S:.0f} s"
    return f"{host}: {str(fault)[:120] or type(fault).__name__}"


def check_hub(case: Case) -> Iterator[Finding]:
    config = case.config
    datasets = (("mbpp", config.tasks.mbpp), ("code_contests", config.tasks.code_contests))
    data = [name for name, dataset in datasets if dataset.weight > 0 and dataset.path is None]
    weights = _absent(case)
    needs = [*([f"the weights of {weights}"] if weights else []), *(f"the dataset {name}" for name in data)]
    if case.environment.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        means = f"{' and '.join(needs)} cannot be fetched" if needs else ""
        yield info("hub", "switched off by HF_HUB_OFFLINE", means, "unset HF_HUB_OFFLINE" if needs else "")
        return
    url = case.environment.get("HF_ENDPOINT") or DEFAULT_HUB
    why = look(case, "hub", url)
    if why is None:
        yield ok("hub", f"{urlsplit(url).hostname} answers")
    elif not needs:
        yield info("hub", why, "nothing of it is needed: weights and problems are here")
    elif weights and catalogue.find(config.model.name) is None:
        yield error("hub", why, f"{weights} cannot be downloaded, so no node can start", _MIRROR)
    else:
        instead = "weights are tried from the package index" if weights else ""
        builtin = "the built-in problems stand in" if config.tasks.fallback else "drawing tasks fails"
        means = "; ".join(
            filter(None, [f"not to be had from it: {', '.join(needs)}", instead, builtin if data else ""])
        )
        yield warning("hub", why, means, _MIRROR)


def check_push(case: Case) -> Iterator[Finding]:
    """Checks that the hub accepts the token for pushing. The token is sent to that hub alone."""
    push = case.config.push
    if not push.enabled:
        return
    try:
        token = take_tokens(push, dict(case.environment)).push
    except ConfigError as fault:
        what, _, do = str(fault).partition(": ")
        yield error("push", what, "no node can start", do or "or set push.enabled=false")
        return
    parts, do = urlsplit(push.endpoint), "make a token that may write at https://huggingface.co/settings/tokens"
    why = look(case, "hub for pushing", push.endpoint)
    role = _role(push.endpoint, token) if why is None else None
    if why is not None or role is None:
        found = why or "whether the hub takes the token could not be found out"
        yield warning("push", found, "nothing is pushed until it answers; training goes on", "see push.endpoint")
    elif role in ("refused", "read"):
        found = "the hub refuses the token" if role == "refused" else "the token may only read"
        yield warning("push", found, "nothing is pushed; training goes on", do)
    else:
        yield ok("push", f"{parts.hostname} takes the token" + (", which may write" if role == "write" else ""))


def _role(endpoint: str, token: str) -> str | None:
    """Returns the token's role at the hub, such as `read` or `write`, `refused` for none, or None if not known."""
    try:
        reply = httpx2.get(
            endpoint.rstrip("/") + "/api/whoami-v2",
            headers={"Authorization": f"Bearer {token}"},
            timeout=TIMEOUT_S,
            follow_redirects=False,
            trust_env=not is_loopback(urlsplit(endpoint).hostname or ""),
        )
        if reply.status_code in (401, 403):
            return "refused"
        if reply.status_code != 200:
            return None
        return msgspec.json.decode(reply.content, type=_WhoAmI).auth.access_token.role
    except (httpx2.HTTPError, ValueError, msgspec.MsgspecError, RecursionError):
        return None


_MIRROR = "see to the connection, name a mirror in HF_ENDPOINT, or give files (tasks.mbpp.path=..., model.name=FOLDER)"


def check_index(case: Case) -> Iterator[Finding]:
    """Checks the index that pip gets packages from: weights come from it where the hub fails."""
    weights = _absent(case)
    if not weights or catalogue.find(case.config.model.name) is None:
        return
    url = case.environment.get("PIP_INDEX_URL") or DEFAULT_INDEX
    why = look(case, "package index", url)
    if why is None:
        yield ok("package index", f"{urlsplit(url).hostname} answers")
    else:
        yield warning(
            "package index",
            why,
            f"{weights} cannot be had from it, where the hub fails too",
            "see to the connection, or name another index in PIP_INDEX_URL",
        )


def _absent(case: Case) -> str:
    """Returns the name of the solver's model if its weights are still to be fetched, else an empty text."""
    name = case.config.model.name
    if catalogue.find(name) is None and not store.HUB_ID.fullmatch(name):
        return ""
    known = {model.name.lower(): model.state for model in store.list_models(case.cache_dir)}
    return "" if known.get(name.lower()) is ModelState.PREPARED else name
