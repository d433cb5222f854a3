"""Finds out whether servers answer, and notes the times they report."""

from __future__ import annotations

import socket
import ssl
import time
from urllib.parse import urlsplit

import httpx2

from codezero.config.multiaddr import is_loopback
from codezero.doctor.case import ExaminedNode
from codezero.errors import causes
from codezero.runtime import proxies
from codezero.runtime.http_dates import unix_time

TIMEOUT_S = 4.0
"""The limit for each step of a connection, and between two bytes, in seconds."""


def why_unreachable(case: ExaminedNode, who: str, url: str) -> str | None:
    """Returns why no server answers HTTP at the URL, or None if one does, whatever its answer. Adds the server's time
    to `case.skews`. Only the host of the URL is shown: the rest may be a key."""
    host = urlsplit(url).hostname or ""
    if not host:
        return "its URL has no host"
    if not is_loopback(host) and (why := proxies.why_unusable()):
        return why
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
    when_s = unix_time(told)
    if when_s is None:
        return None
    return when_s + 0.5 + (int(age) if age.isascii() and age.isdigit() and len(age) < 9 else 0) - now_s


def _why(host: str, fault: Exception) -> str:
    found = causes(fault)
    if any(isinstance(cause, socket.gaierror) for cause in found):
        return f"the name {host} is not found (DNS)"
    if any(isinstance(cause, ssl.SSLError) for cause in found):
        return f"{host} shows no valid certificate: a proxy in between, or a wrong clock"
    if any(isinstance(cause, ConnectionRefusedError) for cause in found):
        return f"{host} refuses the connection: nothing listens there"
    if isinstance(fault, httpx2.TimeoutException):
        return f"{host} does not answer within {TIMEOUT_S:.0f} s"
    return f"{host}: {str(fault)[:120] or type(fault).__name__}"
