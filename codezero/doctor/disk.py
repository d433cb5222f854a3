"""Checks that the folders a node writes to are writable, and how much space is free in them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from codezero.doctor.case import Case
from codezero.doctor.finding import Finding, error, ok, warning
from codezero.llm import catalogue, store
from codezero.llm.store import ModelState

GIB = 2**30
LOW_BYTES = 2 * GIB
"""Free space in bytes below which logs, checkpoints and downloads are soon cut off."""


def check(case: Case) -> Iterator[Finding]:
    folders = (
        ("state_dir", case.state_dir, "nothing that is learnt can be saved"),
        ("tracking.log_dir", case.log_dir, "no node can start"),
        ("model.cache_dir", case.cache_dir, "no weights can be prepared"),
        ("TMPDIR", Path(tempfile.gettempdir()), "no lock can be held, and downloads fail"),
    )
    for setting, folder, means in folders:
        yield _folder(setting, folder, means)
    yield from _space_for_weights(case)


def _folder(setting: str, folder: Path, means: str) -> Finding:
    """Examines one folder, or, where it does not exist yet, the nearest parent that does: the node makes it there."""
    there = folder
    while not os.path.lexists(there):
        there = there.parent
    name = f"disk of {setting}"
    why = _why_unwritable(there)
    if why is not None:
        return error(name, f"{folder}: cannot write in {there}: {why}", means, f"correct its rights, or give {setting}")
    free, files = shutil.disk_usage(there).free, os.statvfs(there)
    found = f"{free / GIB:.1f} GiB free in {folder}"
    if files.f_files and files.f_favail == 0:
        return error(name, f"{folder}: no file can be added (no free inodes)", means, "delete files, or give another")
    if free < LOW_BYTES:
        return warning(name, found, "it is soon full, and then the node stops", f"free some, or give another {setting}")
    return ok(name, found)


def _why_unwritable(folder: Path) -> str | None:
    if not folder.is_dir():
        return "it is no folder" if folder.exists() else "it is a link that leads nowhere"
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0" * 4096)
            file.flush()
    except OSError as fault:
        return fault.strerror or str(fault)
    return None


def _space_for_weights(case: Case) -> Iterator[Finding]:
    """Compares the free space with what `store.prepare` needs, which refuses to begin with less."""
    known = catalogue.find(case.config.model.name)
    states = {model.name: model.state for model in store.list_models(case.cache_dir)}
    if known is None or states.get(known.name) is ModelState.PREPARED:
        return
    needed = 2 * known.size_bytes + 4 * known.parameters + store.SPARE_BYTES
    there = case.cache_dir
    while not there.exists():
        there = there.parent
    free = shutil.disk_usage(there).free
    if states.get(known.name) is ModelState.DAMAGED:
        yield warning(
            "weights",
            f"{known.name} in {case.cache_dir} is damaged",
            "the next start makes it again",
            f"codezero models pull {known.name}",
        )
    if free < needed:
        yield error(
            "weights",
            f"preparing {known.name} needs {needed / GIB:.1f} GiB, and {case.cache_dir} has {free / GIB:.1f} GiB",
            "no node can start",
            "free some, or set model.cache_dir to a folder on another disk",
        )
