"""Checks of a node's files: its state folder, its last rounds and log, and what waits to be sent to the chain.

Nodes of several roles may share a state_dir and the logs; each check looks at all that have played there.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from codezero.config import LedgerKind, Network, TrainMethod
from codezero.doctor.case import ExaminedNode
from codezero.doctor.files import Unusable, text_of
from codezero.doctor.finding import Finding, error, info, ok, refusal, warning
from codezero.errors import StateError
from codezero.observe.roles import PROPOSER, SOLVER, folder_of, log_name
from codezero.observe.status import Status, read_status
from codezero.reports import RoundReport
from codezero.runtime import state
from codezero.runtime.amounts import counted, gib, span, utc
from codezero.runtime.database import read_only
from codezero.runtime.entries import entries
from codezero.views.runs import RECORDS, REPORTS, JsonLines
from codezero.views.words import RECENT, Obstacle, doing, obstacles, presence, proposer_obstacles, verifier_obstacles

_MAX_MANIFEST = 1 << 16
_DATABASES = ("ledger.sqlite", "outbox.sqlite")
_LOG_BYTES = 1 << 20
_SHOWN = 300
"""The most characters of a text of a log, a report or a ledger that are shown."""


def check(case: ExaminedNode) -> Iterator[Finding]:
    if not case.state_dir.is_dir():
        yield info("state", f"{case.state_dir} is not there yet: the first start makes it")
        return
    for role in case.roles:
        yield from _folder(case, role, folder_of(case.state_dir, role))


def _folder(case: ExaminedNode, role: str, folder: Path) -> Iterator[Finding]:
    holder = None
    try:
        holder = state.holder(folder)
        runs = f"a node runs on {folder} (process {holder})"
        yield info(_named("state", role), runs if holder else f"{folder} is free")
        if role == SOLVER:
            yield from _bound(case, folder)
    except StateError as fault:
        yield refusal(_named("state", role), fault, "no node can continue from it")
    last = read_status(folder)
    if last is not None:
        yield from last_run(last, holder, time.time())
    yield from _checkpoints(folder / "checkpoints", role, is_held=holder is not None)
    for name in _DATABASES:
        if (folder / name).exists():
            yield from _database(folder / name)


def _named(name: str, role: str) -> str:
    """Returns the name of a finding about a node of this role."""
    return name if role == SOLVER else f"{role}'s {name}"


def last_run(last: Status, pid: int | None, now_s: float) -> Iterator[Finding]:
    """Reports the node's last note about itself. `pid` is the process that runs on the folder now, None if none."""
    there = presence(last, pid, now_s)
    memory = gib(last.rss_bytes) + (f" of {gib(last.planned_bytes)} planned" if last.planned_bytes else "")
    number = f" in {'round' if last.role == SOLVER else 'batch'} {last.round}" if last.round else ""
    where = "" if pid == last.pid else f", {doing(last)}{number}"
    is_of_another = pid is not None and pid != last.pid
    found = f"{last.role}: {there.text}" + ("" if is_of_another else f"{where}, with {memory}")
    if there.state in ("running", "stopped"):
        yield (ok if pid else info)("node", found)
    else:
        yield warning("node", found, there.meaning, there.do)


def _bound(case: ExaminedNode, folder: Path) -> Iterator[Finding]:
    """Reports the settings that the folder is bound to. Raises StateError: it was made with other settings."""
    config = case.config
    wanted = {"model.name": config.model.name, "train.method": config.train.method.value}
    bound = state.bound_settings(folder)
    if bound.get("train.method") == TrainMethod.lora.value:
        wanted["train.lora_r"] = str(config.train.lora_r)
        wanted["train.lora_alpha"] = str(config.train.lora_alpha)
    state.check_settings(folder, wanted)
    if bound:
        yield ok("state", "it was made with " + ", ".join(f"{key}={value}" for key, value in bound.items()))


def _checkpoints(folder: Path, role: str, is_held: bool) -> Iterator[Finding]:
    """Checks only the sizes of files: checksums of some gigabytes take a minute, and a node checks them at start."""
    name = _named("checkpoints", role)
    saved = sorted((path for path in folder.glob("round-*") if path.is_dir()), reverse=True)
    if not saved:
        yield info(name, f"none in {folder}", "the node starts from the model's own weights")
        return
    faults = {path.name: fault for path in saved for fault in [_fault(path)] if fault is not None}
    whole = [path for path in saved if path.name not in faults]
    listed = "; ".join(f"{path}: {fault}" for path, fault in faults.items())
    if not whole:
        means = "the node stops, so that it does not begin anew unasked"
        do = f"restore one from a backup, or move {folder} away to start from the model's own weights"
        yield error(name, f"all {len(saved)} are damaged ({listed})", means, do)
        return
    age_s = time.time() - whole[0].stat().st_mtime
    if faults:
        do = "look at the disk and at the log of the system: the node itself leaves none half written"
        yield warning(name, f"damaged: {listed}", f"the node continues from {whole[0].name}", do)
    yield ok(name, f"the newest whole one is {whole[0].name}, saved {span(age_s)} ago")
    leftovers = list(folder.glob(".saving-*"))
    if leftovers and not is_held:
        yield info(name, f"{len(leftovers)} incomplete, of an interrupted save", "the next start clears them")


def _fault(checkpoint: Path) -> str | None:
    try:
        with (checkpoint / "manifest.json").open("rb") as file:
            manifest: Any = json.loads(file.read(_MAX_MANIFEST))
        for name, entry in manifest["files"].items():
            size = (checkpoint / Path(name).name).stat().st_size
            if size != entry["bytes"]:
                return f"{name} has {size} bytes, the manifest says {entry['bytes']}"
    except OSError as fault:
        return f"{Path(fault.filename or '').name}: {fault.strerror}"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "its manifest is unreadable"
    return None


def _database(path: Path) -> Iterator[Finding]:
    try:
        with read_only(path, 2.0) as db:
            (said,) = db.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as fault:  # of the system: a damaged file is another sqlite3.Error
        do = f"make it, and {path.parent}, readable and writable for the user of the node, or look at the disk"
        yield error(path.name, f"cannot look at {path}: {fault}", "the node stops", do)
        return
    except sqlite3.Error as fault:
        said = str(fault)
    if said != "ok":
        do = "restore it from a backup, or move it away to start a new one (what was not submitted is then lost)"
        yield error(path.name, f"{path} is damaged: {said}", "the node stops; what it holds may be lost", do)


def check_log(case: ExaminedNode) -> Iterator[Finding]:
    for role in case.roles:
        yield from _log(_named("log", role), case.log_dir / log_name(role))


def _log(name: str, path: Path) -> Iterator[Finding]:
    try:
        found = entries(text_of(path, _LOG_BYTES))
    except Unusable as reason:
        yield info(name, f"{path}: {reason}")
        return
    failures = [entry for entry in found if entry.fails]
    warnings = [entry for entry in found if entry.warns and not entry.fails]
    if failures:
        last = failures[-1]
        means = "it ended the node, or a part of it"
        do = f"see the lines before it in {path}, and docs/troubleshooting.md"
        yield warning(name, f"last failure at {utc(last.at_s)}: {(last.raised or last.text)[:_SHOWN]}", means, do)
    if warnings:
        last = warnings[-1]
        count = counted(len(warnings), "warning")
        yield info(name, f"{count} recently in {path}; the last at {utc(last.at_s)}: {last.text[:_SHOWN]}")
    elif not failures:
        yield ok(name, f"no recent failure or warning in {path}")


def check_rounds(case: ExaminedNode) -> Iterator[Finding]:
    for role in case.roles:
        path, name, noun = case.log_dir / REPORTS[role], _named("batches", role), "batch"
        reports = JsonLines(path, RECORDS[role], RECENT).read()
        if role == SOLVER:
            name, noun, found = "rounds", "round", _of_rounds(case, reports)
        else:
            found = proposer_obstacles(reports) if role == PROPOSER else verifier_obstacles(reports)
        if reports:
            at_s = reports[-1].finished_at_s  # 0 if not recorded
            ago = f", finished {span(time.time() - at_s)} ago" if at_s else ""
            yield info(name, f"the last one is {getattr(reports[-1], noun)}{ago}")
        else:
            yield info(name, f"{path} has no report", f"no {noun} has been finished with this log folder")
        for one in found:
            yield warning(one.part if role == SOLVER else name, one.what[:_SHOWN], one.meaning, one.do)


def _of_rounds(case: ExaminedNode, reports: Sequence[RoundReport]) -> list[Obstacle]:
    """Returns the obstacles of a solver, without those of the swarm where it takes nothing from one."""
    joins = case.config.swarm.network is not Network.none and case.config.swarm.num_external > 0
    found = obstacles(reports, read_status(case.state_dir) if case.is_running else None)
    return [one for one in found if joins or one.part != "swarm"]


def check_outbox(case: ExaminedNode) -> Iterator[Finding]:
    """Reports what waits in the outbox, since when, and why: users see it as "failed to submit" in the log."""
    if not (case.state_dir / "outbox.sqlite").exists():
        if case.config.ledger.kind is not LedgerKind.local:
            yield info("rewards", "nothing was submitted from this state folder yet")
        return
    from codezero.ledger.reading import read_view

    view = read_view(case.state_dir)
    for problem in view.problems:
        yield warning("rewards", problem, "what it holds is not submitted", "restore it from a backup")
    trouble = f"; what keeps them: {view.trouble.text[:_SHOWN]}" if view.trouble else ""
    if not view.pending:
        found = f"nothing waits; {view.unsent_points:+.2f} points are summed up for the next submission{trouble}"
        yield ok("rewards", found)
        return
    oldest = min(view.pending, key=lambda item: item.since_s)
    waits_s = time.time() - oldest.since_s
    many = f"{len(view.pending)} wait, the oldest" if len(view.pending) > 1 else "1 waits,"
    found = f"{many} for {span(waits_s)}: {oldest.what}, {oldest.state}"
    found += f" ({oldest.last_error[:_SHOWN]})" if oldest.last_error else ""
    if waits_s > 600 or trouble:
        means = "nothing is lost: they are sent while the node runs, once what keeps them is gone"
        do = f"see `chain`, `account` and `sign-in app` here; `{case.status_command}` lists them all"
        yield warning("rewards", found + trouble, means, do)
    else:
        yield info("rewards", found)
