"""The check of proxies in the environment, which break requests to this machine or its network if they get them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from codezero.config import Backend, LedgerKind
from codezero.doctor.case import Case
from codezero.doctor.finding import Finding, info, ok, warning

_NAMES = ("http_proxy", "https_proxy", "all_proxy")


def check(case: Case) -> Iterator[Finding]:
    proxies = {name: value for name in _NAMES for value in [_of(case.environment, name)] if value}
    if not proxies:
        yield ok("proxies", "none in the environment")
        return
    shown = ", ".join(f"{name.upper()} at {_place(value)}" for name, value in proxies.items())
    spared = [word.strip().lower() for word in _of(case.environment, "no_proxy").split(",") if word.strip()]
    near = [url for url in _urls(case) if _is_near(url) and not _is_spared(url, spared)]
    if near:
        hosts = ", ".join(dict.fromkeys(str(urlsplit(url).hostname) for url in near))
        yield warning(
            "proxies",
            f"{shown}; NO_PROXY does not name {hosts}",
            "what is asked of these goes to the proxy, which answers 502 or with a page of its own",
            f"export NO_PROXY=localhost,127.0.0.1,{hosts}",
        )
    elif not any(_is_spared(url, spared) for url in ("http://localhost", "http://127.0.0.1")):
        yield info(
            "proxies",
            f"{shown}; NO_PROXY spares neither localhost nor 127.0.0.1",
            "codezero asks this machine directly all the same; other programs, such as npm or curl, may not",
            "export NO_PROXY=localhost,127.0.0.1",
        )
    else:
        yield info("proxies", f"{shown}; hub, RPC and judge service are asked through it")


def _of(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.upper()) or ""


def _place(proxy: str) -> str:
    """Returns host and port of a proxy; the rest of its URL may be a password."""
    parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    return parts.netloc.rpartition("@")[2] or "an unreadable address"


def _urls(case: Case) -> list[str]:
    """Returns the configured URLs that may be on this machine or its network."""
    config = case.config
    found = [config.evaluator.url] if config.evaluator.backend in (Backend.ollama, Backend.openai) else []
    if config.ledger.kind is not LedgerKind.local:
        found += [config.ledger.rpc_url, *([config.ledger.proxy_url] if config.ledger.kind is LedgerKind.modal else [])]
    return [url for url in [*found, config.judge.url if config.judge.enabled else "", config.proposer.url] if url]


def _is_near(url: str) -> bool:
    """Returns whether a URL is of the local network, which a proxy does not know: a private address, or a name without
    a dot as in Docker Compose. Loopback is not counted: codezero asks it without a proxy."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host != "localhost" and ("." not in host or host.endswith((".local", ".internal", ".lan")))
    return not address.is_global and not address.is_loopback


def _is_spared(url: str, spared: list[str]) -> bool:
    host = (urlsplit(url).hostname or "").lower()
    return any(word == "*" or host == word.lstrip(".") or host.endswith("." + word.lstrip(".")) for word in spared)
