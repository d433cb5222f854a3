"""Checks of what a swarm needs: addresses to listen on, bootnodes that answer, and proxies that spare local servers."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

from codezero.config import Backend, LedgerKind, Network, PeerTasks, RolloutEngine
from codezero.config.multiaddr import Multiaddr
from codezero.doctor import reach
from codezero.doctor.case import ExaminedNode
from codezero.doctor.finding import Finding, error, info, ok, warning
from codezero.errors import ConfigError
from codezero.launch import hosting
from codezero.rollouts import rollout_file
from codezero.runtime.amounts import counted
from codezero.runtime.kernel import IS_LINUX
from codezero.tasks.known import rule

MOST = 32
"""The largest number of addresses that are dialled."""
HELLO = b"\x13/multistream/1.0.0\n"
"""The first bytes that each side of a libp2p connection sends (https://github.com/multiformats/multistream-select)."""
NOT_TRIED = "it is dialled over UDP, which is not tried here"
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def check_bootnodes(case: ExaminedNode) -> Iterator[Finding]:
    swarm = case.config.swarm
    if swarm.network is Network.none:
        yield info("swarm", "none: this node trains alone (join one with swarm=invite.yaml)")
        return
    if not swarm.bootnodes:
        named = case.config.ledger.kind is not LedgerKind.local and case.config.ledger.bootnodes
        found = "no bootnodes but those of the contract" if named else "no bootnodes: this node hosts a new swarm"
        yield info("swarm", found)
    else:
        yield from dialled(swarm.bootnodes, "swarm.bootnodes")
    yield _of_peers(case)


def _of_peers(case: ExaminedNode) -> Finding:
    """Returns which tasks of peers are trained on."""
    found = f"the node trains on tasks of peers: {rule(case.config.swarm.tasks, case.config.tasks)}"
    if case.config.swarm.tasks is PeerTasks.known:
        return info("tasks of peers", found)
    means = "one peer of eight that sent false tests made the others unlearn most of what they could"
    do = "set swarm.tasks=known, unless you trust every node of the swarm"
    return info("tasks of peers", found, means, do)


def dialled(addresses: Sequence[str], source: str) -> Iterator[Finding]:
    """Dials the addresses at once and yields a finding for each, and one more if all were tried and none answers."""
    faults: dict[str, str | None] = {}
    threads = [
        threading.Thread(target=lambda one=text: faults.update({one: why_not(one)}), daemon=True)
        for text in addresses[:MOST]
    ]
    deadline = time.monotonic() + 2 * reach.TIMEOUT_S
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    told = dict(faults)
    for text in addresses[:MOST]:
        fault = told.get(text, "no answer in time: the search for its name hangs")
        if fault is None:
            yield ok("bootnode", f"{text} answers")
        elif fault == NOT_TRIED:
            yield info("bootnode", f"{text}: {fault}")
        else:
            means = "the node joins through the others" if None in told.values() else ""
            yield warning("bootnode", f"{text}: {fault}", means, f"check that it runs and {source} has its address")
    if not {None, NOT_TRIED} & set(told.values()):
        count = len(addresses[:MOST])
        found = f"none of {counted(count, 'bootnode')} answers"
        do = "ask whoever hosts the swarm for a new invitation; check that no firewall keeps outgoing connections back"
        yield warning("swarm", found, "the node trains alone, keeps dialling, and says so in every round's line", do)


def why_not(text: str) -> str | None:
    """Returns why a node cannot join the swarm through this address, or None if a libp2p host answers there. The peer
    id is not checked: that happens when a node joins."""
    try:
        address = Multiaddr.parse(text)
    except ValueError as fault:
        return f"it cannot be dialled: {fault}"
    if address.transport == "udp":
        return NOT_TRIED
    try:
        with closing(socket.create_connection((address.host, address.port), timeout=reach.TIMEOUT_S)) as connection:
            if "/ws" in address.over:
                return None  # a WebSocket begins with HTTP, so HELLO would not be answered
            connection.sendall(HELLO)
            return None if _said(connection) else "something other than libp2p answers there"
    except socket.gaierror:
        return f"the name {address.host} is not found (DNS)"
    except ConnectionRefusedError:
        return f"nothing listens on port {address.port}" + _whose(address)
    except TimeoutError:
        return f"no answer within {reach.TIMEOUT_S:.0f} s: it is down, or a firewall or router lets nobody in" + _whose(
            address
        )
    except OSError as fault:
        return f"{fault.strerror or fault}" + _whose(address)


def _said(connection: socket.socket) -> bool:
    said = b""
    while len(said) < len(HELLO):
        more = connection.recv(len(HELLO) - len(said))
        if not more:
            break
        said += more
    return said == HELLO


def _whose(address: Multiaddr) -> str:
    if address.ip is None or address.ip.is_global:
        return ""
    where = "this machine itself" if address.ip.is_loopback else "a private network"
    return f"; the address is of {where}, so it is right only there"


def check_ports(case: ExaminedNode) -> Iterator[Finding]:
    if case.config.swarm.network is Network.none:
        return
    ports = set()
    for text in case.config.swarm.listen:
        try:
            address = Multiaddr.parse(text)
        except ValueError as fault:
            yield error("swarm.listen", f"{text}: {fault}", "the p2p daemon does not start", "correct swarm.listen")
            continue
        ports.add(address.port)
        yield _listen(address, case.is_running)
    for text in case.config.swarm.announce if 0 in ports else ():
        with suppress(ValueError):
            if (address := Multiaddr.parse(text)).port not in ports:
                found = f"{address} is announced, and swarm.listen takes a free port"
                do = f"listen on a fixed port, as 'swarm.listen=[/ip4/0.0.0.0/tcp/{address.port}]', and forward to it"
                yield warning("swarm.announce", found, "others dial a port on which nobody listens", do)


def _listen(address: Multiaddr, is_running: bool) -> Finding:
    if address.port == 0:
        return ok("swarm.listen", f"{address}: a free port is taken")
    if is_running:
        return info("swarm.listen", f"{address}: a node runs here already, and has it")
    why = hosting.why_taken(address)
    if why is None:
        return ok("swarm.listen", f"{address} is free")
    lists = "ss -ltunp" if IS_LINUX else "lsof -nP -iTCP -sTCP:LISTEN -iUDP"
    do = f"stop the program that has it (see `processes` here, or `{lists}`), or give another address or port"
    return error("swarm.listen", why, "the p2p daemon does not start", do)


def check_proxies(case: ExaminedNode) -> Iterator[Finding]:
    proxies = {name: value for name in _PROXIES for value in [_of(case.environment, name)] if value}
    if not proxies:
        yield ok("proxies", "none in the environment")
        return
    shown = ", ".join(f"{name.upper()} at {_place(value)}" for name, value in proxies.items())
    spared = [word.strip().lower() for word in _of(case.environment, "no_proxy").split(",") if word.strip()]
    near = [url for url in _urls(case) if _is_near(url) and not _is_spared(url, spared)]
    variable = "no_proxy" if case.environment.get("no_proxy") else "NO_PROXY"  # which most programs look at first
    hosts = list(dict.fromkeys(str(urlsplit(url).hostname) for url in near))
    do = f"export {variable}={','.join(dict.fromkeys([*spared, 'localhost', '127.0.0.1', *hosts]))}"
    if near:
        means = "what is asked of these goes to the proxy, which answers 502 or with a page of its own"
        yield warning("proxies", f"{shown}; NO_PROXY does not name {', '.join(hosts)}", means, do)
    elif not any(_is_spared(url, spared) for url in ("http://localhost", "http://127.0.0.1")):
        found = f"{shown}; NO_PROXY spares neither localhost nor 127.0.0.1"
        means = "codezero asks this machine directly anyway; other programs, such as npm or curl, may not"
        yield info("proxies", found, means, do)
    else:
        yield info("proxies", f"{shown}; hub, RPC and judge service are asked through it")


def _of(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.upper()) or ""


def _place(proxy: str) -> str:
    """Returns host and port of a proxy; the rest of its URL may be a password."""
    parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    return parts.netloc.rpartition("@")[2] or "an unreadable address"


def _urls(case: ExaminedNode) -> list[str]:
    """Returns the configured URLs that may be on this machine or its network."""
    config = case.config
    found = [config.evaluator.url] if config.evaluator.backend in (Backend.ollama, Backend.openai) else []
    if config.ledger.kind is not LedgerKind.local:
        found += [config.ledger.rpc_url, *([config.ledger.proxy_url] if config.ledger.kind is LedgerKind.modal else [])]
    if config.rollout.engine is RolloutEngine.remote:
        for name in config.rollout.servers:
            with suppress(ConfigError):  # told by the check of rollout servers
                found.append(rollout_file.read(Path(name).expanduser()).url)
    return [url for url in [*found, config.judge.url if config.judge.enabled else "", config.proposer.url] if url]


def _is_near(url: str) -> bool:
    """Returns whether a URL is in the local network, which a proxy does not know: a private address, or a name without
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
