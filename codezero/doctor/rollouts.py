"""Checks of the rollout servers that a node asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from codezero.config import RolloutEngine, checkout
from codezero.doctor import reach
from codezero.doctor.case import ExaminedNode
from codezero.doctor.finding import Finding, ok, refusal, warning
from codezero.errors import ConfigError
from codezero.rollouts import rollout_file
from codezero.rollouts.client import RolloutServer, ServerFailed

NAME = "rollout server"
MEANS = "it is left out: other servers do its work, or this node itself, which takes longer"


def check(case: ExaminedNode) -> Iterator[Finding]:
    """Reads the rollout files and asks each server for its status."""
    if case.config.rollout.engine is RolloutEngine.remote:
        urls: set[str] = set()
        for name in case.config.rollout.servers:
            yield _look(case, name, urls)


def _look(case: ExaminedNode, name: str, urls: set[str]) -> Finding:
    path = Path(name)
    try:
        file = rollout_file.read_another(name, urls)
    except ConfigError as fault:
        return refusal(NAME, fault)
    why = reach.why_unreachable(case, NAME, file.url)
    if why is not None:
        do = f"run `{checkout.COMMAND} rollout serve` there with a --host that this machine reaches, and open its port"
        return warning(NAME, f"{path.name}: {why}", MEANS, f"{do}; copy the file again if its address has changed")
    try:
        status = RolloutServer(file, path.name).status()
    except ServerFailed as fault:
        do = f"copy {path.name} again from the server's machine, and use the same codezero on both"
        return warning(NAME, f"{path.name}: {fault}", MEANS, do)
    wanted = case.config.model.name
    if status.model != wanted:
        found = f"{path.name}: it serves {status.model}, and this node learns {wanted}"
        means = f"if these are not the same weights {MEANS}"
        return warning(NAME, found, means, f"start it with model.name={wanted}")
    idle = 1 - status.busy_s / max(status.up_s, status.busy_s, 1e-9)
    return ok(NAME, f"{path.name}: it serves {status.model} by {status.engine}, idle {idle:.0%} of its time")
