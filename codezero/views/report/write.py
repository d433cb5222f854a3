"""Writes a report to its file, without replacing anything but a report unless forced."""

from __future__ import annotations

from pathlib import Path

from codezero.errors import CommandError, told_as
from codezero.runtime.files import replace_file
from codezero.views.report.page import MARK

HEAD_BYTES = 400
"""The number of first bytes that contain the mark, in a page and in a picture."""


def check(path: Path, force: bool) -> None:
    """Raises CommandError if something but a report is at `path`, unless forced, or if its folder does not exist."""
    if not path.parent.is_dir():
        raise CommandError(f"there is no folder {path.parent}: make it, or give another --out")
    if path.is_dir():
        raise CommandError(f"{path} is a folder: give a file in it with --out")
    if path.exists() and not force and not _is_report(path):
        raise CommandError(f"{path} is not a report of codezero: give another --out, or --force to replace it")


def write(path: Path, content: bytes) -> None:
    """Writes the content in one step. Raises CommandError if it cannot be written."""
    with told_as(CommandError, f"cannot write {path}", "give another --out"):
        replace_file(path, content)


def _is_report(path: Path) -> bool:
    with told_as(CommandError, f"cannot read {path}, to see whether it may be replaced"), path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    return MARK.encode() in head
