"""All checks at once, each with a limit of its own: none can hold up or end the others."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from codezero.config import checkout
from codezero.doctor.case import Case
from codezero.doctor.finding import Finding, error, warning

NETWORK_S = 10.0
"""For a check that asks one server after another."""
LOCAL_S = 8.0
LAST_S = 2.0
PROBE_S = 18.0
"""For torch and the memory plan: importing both takes 8 s on two free cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    name: str
    run: Callable[[Case], Iterable[Finding]]
    """What it has found when it runs out of time, or fails, still counts."""
    limit_s: float


def _check(name: str, where: str, limit_s: float = LOCAL_S) -> Check:
    """The function is imported by the check's own thread: a package that is broken or missing is a finding too."""
    return Check(name=name, run=partial(_imported, where), limit_s=limit_s)


def _imported(where: str, case: Case) -> Iterable[Finding]:
    module, _, function = where.partition(":")
    found: Iterable[Finding] = getattr(importlib.import_module(f"codezero.doctor.{module}"), function)(case)
    return found


CHECKS = (
    _check("python", "installation:check_python"),
    _check("packages", "installation:check_packages"),
    _check("torch", "torch_build:check", PROBE_S),
    _check("processor", "machine:check_processor"),
    _check("memory", "machine:check_memory"),
    _check("disk", "disk:check"),
    _check("settings", "settings:check_files"),
    _check("identity", "identity:check"),
    _check("state", "state_folder:check"),
    _check("ports", "ports:check"),
    _check("processes", "processes:check"),
    _check("proxies", "proxies:check"),
    _check("hub", "reach:check_hub", NETWORK_S),
    _check("package index", "reach:check_index", NETWORK_S),
    _check("push", "reach:check_push", NETWORK_S),
    _check("swarm", "bootnodes:check", NETWORK_S),
    _check("chain", "chain:check", NETWORK_S),
    _check("sign-in", "sign_in:check", NETWORK_S),
    _check("judge service", "services:check_judge", NETWORK_S),
    _check("evaluator", "services:check_evaluator", NETWORK_S),
    _check("rewards", "history:check_outbox"),
    _check("rounds", "history:check_rounds"),
    _check("log", "history:check_log"),
)
LAST = (_check("clock", "clock:check", LAST_S),)
"""Of what the others have seen in passing."""


def examine(case: Case, checks: Sequence[Check] = CHECKS, last: Sequence[Check] = LAST) -> list[Finding]:
    """The findings in the order of the checks. Takes at most as long as the longest limit of each of the two: 20 s."""
    return [*_all_at_once(case, checks), *_all_at_once(case, last)]


def _all_at_once(case: Case, checks: Sequence[Check]) -> list[Finding]:
    started_s = time.monotonic()
    running: list[tuple[Check, list[Finding], threading.Thread]] = []
    for check in checks:
        found: list[Finding] = []
        # A daemon: one that hangs, as in a search for a host's address, cannot be ended and must not be waited for.
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


def _run(check: Check, case: Case, found: list[Finding]) -> None:
    try:
        for finding in check.run(case):
            found.append(finding)
    except ImportError as fault:
        found.append(
            error(
                check.name,
                f"cannot be looked at: {fault}",
                "a package is missing or damaged",
                checkout.INSTALL_AGAIN,
            )
        )
    except Exception as fault:  # a boundary: what one check did not foresee must not hide what others find
        found.append(
            warning(
                check.name,
                f"the check itself failed: {type(fault).__name__}: {fault}",
                "nothing is known of it",
                "tell whoever maintains codezero, with a --bundle",
            )
        )


def _overdue(check: Check) -> Finding:
    return warning(
        check.name,
        f"no result within {check.limit_s:.0f} s",
        "a server, the search for its address, or this machine is very slow or hangs",
        "try again when the machine is less busy; else look at its network, DNS and disks",
    )
