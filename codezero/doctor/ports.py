"""Checks of the addresses that a node listens on and announces."""

from __future__ import annotations

from collections.abc import Iterator

from codezero.config import Network
from codezero.config.multiaddr import Multiaddr
from codezero.doctor.case import Case
from codezero.doctor.finding import Finding, error, info, ok, warning
from codezero.launch import hosting
from codezero.runtime import state


def check(case: Case) -> Iterator[Finding]:
    if case.config.swarm.network is Network.none:
        return
    is_running = state.holder(case.state_dir) is not None
    for text in case.config.swarm.listen:
        try:
            address = Multiaddr.parse(text)
        except ValueError as fault:
            yield error("swarm.listen", f"{text}: {fault}", "the p2p daemon does not start", "correct swarm.listen")
            continue
        yield _listen(address, is_running)
    announced = [Multiaddr.parse(text) for text in case.config.swarm.announce if _is_address(text)]
    ports = {Multiaddr.parse(text).port for text in case.config.swarm.listen if _is_address(text)}
    for address in announced:
        if address.port not in ports and 0 in ports:
            yield warning(
                "swarm.announce",
                f"{address} is announced, and swarm.listen takes a free port",
                "others dial a port on which nobody listens",
                f"listen on a fixed port, such as swarm.listen=[/ip4/0.0.0.0/tcp/{address.port}], and forward to it",
            )


def _listen(address: Multiaddr, is_running: bool) -> Finding:
    if address.port == 0:
        return ok("swarm.listen", f"{address}: a free port is taken")
    if is_running:
        return info("swarm.listen", f"{address}: a node runs here already, and has it")
    why = hosting.why_taken(address)
    if why is None:
        return ok("swarm.listen", f"{address} is free")
    return error(
        "swarm.listen",
        why,
        "the p2p daemon does not start",
        "stop the program that has it (see `processes` here, or `ss -ltnp`), or give another port",
    )


def _is_address(text: str) -> bool:
    try:
        Multiaddr.parse(text)
    except ValueError:
        return False
    return True
