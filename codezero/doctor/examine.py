"""Runs all checks at once, each in a thread with a time limit, so that none can delay or end the others."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from codezero.config import checkout
from codezero.doctor.case import ExaminedNode
from codezero.doctor.finding import Finding, error, refusal, warning
from codezero.errors import CodezeroError

NETWORK_S = 10.0
"""The limit for a check that asks one server after another, in seconds."""
LOCAL_S = 8.0
LAST_S = 2.0
PROBE_S = 18.0
"""The limit for torch and the memory plan, in seconds: importing both takes 8 s on two free cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check of the doctor."""

    name: str
    run: Callable[[ExaminedNode], Iterable[Finding]]
    """The check itself. Findings that it has yielded before it fails or runs out of time count."""
    limit_s: float


def _check(name: str, where: str, limit_s: float = LOCAL_S) -> Check:
    """Returns a check whose function is imported by the check's own thread, so that a broken or missing package is a
    finding too. `where` is `module:function`."""
    return Check(name=name, run=partial(_imported, where), limit_s=limit_s)


def _imported(where: str, case: ExaminedNode) -> Iterable[Finding]:
    module, _, function = where.partition(":")
    found: Iterable[Finding] = getattr(importlib.import_module(f"codezero.doctor.{module}"), function)(case)
    return found


CHECKS = (
    _check("python", "installation:check_python"),
    _check("packages", "installation:check_packages"),
    _check("torch", "torch_build:check", PROBE_S),
    _check("processor", "machine:check_processor"),
    _check("memory", "machine:check_memory"),
    _check("disk", "machine:check_disk"),
    _check("settings", "installation:check_files"),
    _check("identity", "identity:check"),
    _check("state", "state_folder:check"),
    _check("ports", "swarm:check_ports"),
    _check("processes", "processes:check"),
    _check("proxies", "swarm:check_proxies"),
    _check("hub", "services:check_hub", NETWORK_S),
    _check("package index", "services:check_index", NETWORK_S),
    _check("push", "services:check_push", NETWORK_S),
    _check("swarm", "swarm:check_bootnodes", NETWORK_S),
    _check("chain", "chain:check_chain", NETWORK_S),
    _check("sign-in", "chain:check_sign_in", NETWORK_S),
    _check("judge service", "services:check_judge", NETWORK_S),
    _check("evaluator", "services:check_evaluator", NETWORK_S),
    _check("rollout servers", "rollouts:check", NETWORK_S),
    _check("rewards", "state_folder:check_outbox"),
    _check("rounds", "state_folder:check_rounds"),
    _check("log", "state_folder:check_log"),
)
LAST = (_check("clock", "machine:check_clock", LAST_S),)
"""The checks that run after the others, because they use what those have noted."""


def examine(case: ExaminedNode, checks: Sequence[Check] = CHECKS, last: Sequence[Check] = LAST) -> list[Finding]:
    """Returns the findings in the order of the checks. Takes at most the longest limit of `checks` plus that of `last`,
    20 s."""
    return [*_all_at_once(case, checks), *_all_at_once(case, last)]


def _all_at_once(case: ExaminedNode, checks: Sequence[Check]) -> list[Finding]:
    started_s = time.monotonic()
    running: list[tuple[Check, list[Finding], threading.Thread]] = []
    for check in checks:
        found: list[Finding] = []
        # A daemon thread: one that hangs, such as in a DNS look-up, cannot be ended and must not be waited for.
        thread = threading.Thread(target=_run, args=(check, case, found), name=f"check {check.name}", daemon=True)
        thread.start()
        running.append((check, found, thread))
    findings: list[Finding] = []
    for check, found, thread in running:
        thread.join(max(0.0, started_s + check.limit_s - time.monotonic()))
        findings += list(found)
        if thread.is_alive():
            findings.append(_overdue(check))
    return findings


def _run(check: Check, case: ExaminedNode, found: list[Finding]) -> None:
    try:
        for finding in check.run(case):
            found.append(finding)
    except ImportError as fault:
        means = "a package is missing or damaged"
        found.append(error(check.name, f"cannot be looked at: {fault}", means, checkout.INSTALL_AGAIN))
    except CodezeroError as fault:
        found.append(refusal(check.name, fault))
    except PermissionError as fault:
        means, do = "its result is not known", "ask as the user who runs the node, or correct the rights"
        found.append(warning(check.name, f"cannot read {fault.filename}: {fault.strerror}", means, do))
    except Exception as fault:  # a boundary: an error that one check did not foresee must not hide others' findings
        failed, do = f"{type(fault).__name__}: {fault}", "report it to the maintainers of codezero, with a --bundle"
        found.append(warning(check.name, f"the check itself failed: {failed}", "its result is not known", do))


def _overdue(check: Check) -> Finding:
    means = "a server, the search for its address, or this machine is very slow or hangs"
    do = "try again when the machine is less busy; else look at its network, DNS and disks"
    return warning(check.name, f"no result within {check.limit_s:.0f} s", means, do)
