"""Checks of the state folder: which process holds it, its bound settings, and whether its files are whole."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codezero.config import TrainMethod
from codezero.doctor.case import Case
from codezero.doctor.finding import Finding, error, info, ok, warning
from codezero.errors import StateError
from codezero.observe.status import SILENT_S, Status, read_status
from codezero.runtime import state
from codezero.runtime.amounts import span
from codezero.runtime.database import read_only

GIB = 2**30
STOPPED = "stopped"
"""The `ended` text that `observe.status` notes of a node that was asked to end, or had played its rounds."""
_MAX_MANIFEST = 1 << 16
_DATABASES = ("ledger.sqlite", "outbox.sqlite")


def check(case: Case) -> Iterator[Finding]:
    folder = case.state_dir
    if not folder.is_dir():
        yield info("state", f"{folder} is not there yet: the first start makes it")
        return
    holder = None
    try:
        holder = state.holder(folder)
        yield info("state", f"a node runs on {folder} (process {holder})" if holder else f"{folder} is free")
        yield from _bound(case, folder)
    except StateError as fault:
        yield error("state", str(fault), "no node can go on from it", "give another state_dir")
    last = read_status(folder)
    if last is not None:
        yield from last_run(last, holder, time.time())
    yield from _checkpoints(folder / "checkpoints", is_held=holder is not None)
    for name in _DATABASES:
        if (folder / name).exists():
            yield from _database(folder / name)


def last_run(last: Status, holder: int | None, now_s: float) -> Iterator[Finding]:
    """Reports the node's last note about itself. `holder` is the process that runs on the folder now, None if none."""
    what = f"{last.role} in {last.stage}" + (f" of round {last.round}" if last.round is not None else "")
    memory = f"{last.rss_bytes / GIB:.1f} GiB" + (
        f" of {last.planned_bytes / GIB:.1f} planned" * bool(last.planned_bytes)
    )
    silent_s = now_s - last.updated_at_s
    if holder == last.pid:
        if silent_s > SILENT_S:
            yield warning(
                "node",
                f"process {holder}, {what}, has said nothing for {span(silent_s)}",
                "it hangs, is suspended, or this machine is out of memory or very busy",
                f"see the end of its log; `kill {holder}` ends it (`kill -9 {holder}` where that does not), and it "
                "goes on where it was when started again",
            )
        elif last.planned_bytes and last.rss_bytes > 1.1 * last.planned_bytes:
            more = "the system may kill it"
            yield warning(
                "node", f"{what}, with {memory}", more, "leave it more room: train.method=lora, or a smaller model"
            )
        else:
            yield ok("node", f"{what}, with {memory}")
    elif not last.ended:
        yield warning(
            "node",
            f"the last one ended without a word {span(silent_s)} ago, {what}, with {memory}",
            "it was killed: for want of memory (`dmesg | grep -i oom` tells), by hand, or with the machine",
            "start it again, it goes on where it was; against a want of memory train.method=lora helps",
        )
    elif last.ended != STOPPED:
        yield warning(
            "node",
            f"the last one ended {span(silent_s)} ago, {what}: {last.ended}",
            "it did not go on after that",
            "do what the message says; docs/troubleshooting.md has more",
        )
    else:
        yield info("node", f"the last one was stopped {span(silent_s)} ago, {what}")


def _bound(case: Case, folder: Path) -> Iterator[Finding]:
    """Reports the settings that the folder is bound to. Raises StateError: it was made with other settings."""
    config = case.config
    wanted = {"model.name": config.model.name}
    if config.train.method is not TrainMethod.auto:
        wanted["train.method"] = config.train.method.value
    if state.bound_settings(folder).get("train.method") == TrainMethod.lora.value:
        wanted["train.lora_r"] = str(config.train.lora_r)
    state.check_settings(folder, wanted)
    bound = state.bound_settings(folder)
    if bound:
        yield ok("state", "it was made with " + ", ".join(f"{key}={value}" for key, value in bound.items()))


def _checkpoints(folder: Path, is_held: bool) -> Iterator[Finding]:
    """Checks only the sizes of files: checksums of some gigabytes take a minute, and a node checks them at start."""
    saved = sorted((path for path in folder.glob("round-*") if path.is_dir()), reverse=True)
    if not saved:
        yield info("checkpoints", f"none in {folder}", "the node starts from the model's own weights")
        return
    faults = {path.name: fault for path in saved for fault in [_fault(path)] if fault is not None}
    whole = [path for path in saved if path.name not in faults]
    listed = "; ".join(f"{name}: {fault}" for name, fault in faults.items())
    if not whole:
        yield error(
            "checkpoints",
            f"all {len(saved)} are damaged ({listed})",
            "the node stops, so that it does not begin anew unasked",
            f"restore one from a backup, or move {folder} away to start from the model's own weights",
        )
        return
    age_s = time.time() - whole[0].stat().st_mtime
    if faults:
        yield warning(
            "checkpoints",
            f"damaged: {listed}",
            f"the node goes on from {whole[0].name}",
            "look at the disk (`dmesg`): the node itself leaves none half written",
        )
    yield ok("checkpoints", f"the newest whole one is {whole[0].name}, saved {span(age_s)} ago")
    leftovers = list(folder.glob(".saving-*"))
    if leftovers and not is_held:
        yield info("checkpoints", f"{len(leftovers)} half written, of a killed save", "the next start clears them")


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
    except sqlite3.Error as fault:
        said = str(fault)
    if said != "ok":
        yield error(
            path.name,
            f"{path} is damaged: {said}",
            "the node stops; what it holds may be lost",
            "restore it from a backup, or move it away to start a new one (what was not submitted is then lost)",
        )
