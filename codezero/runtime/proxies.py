"""Checks of the proxies that the environment names (ALL_PROXY, HTTPS_PROXY, HTTP_PROXY)."""

from __future__ import annotations

import sys
from collections.abc import Callable

import httpx2

from codezero.errors import first_line


def why_unusable() -> str:
    """Returns why no HTTP client can be made with the proxies of the environment, and what to do; empty if one can. A
    client needs all of them, also for hosts that NO_PROXY names."""
    try:
        httpx2.Client(verify=False).close()  # sends nothing; certificates take time to read
    except ImportError:
        install = f"`{sys.executable} -m pip install socksio` without that proxy"
        return f"a proxy of ALL_PROXY or HTTPS_PROXY is a SOCKS one: name an http:// proxy, unset it, or {install}"
    except (ValueError, httpx2.InvalidURL) as error:
        return f"a proxy of ALL_PROXY, HTTPS_PROXY or HTTP_PROXY cannot be used ({first_line(error)}): correct it"
    return ""


def require_usable(kind: Callable[[str], Exception]) -> None:
    """Raises an error of this kind if no HTTP client can be made with the proxies of the environment."""
    if why := why_unusable():
        raise kind(why)
