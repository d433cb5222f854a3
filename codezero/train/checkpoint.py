"""Checkpoints: the state that a node needs to continue after a kill, saved together.

    checkpoints/round-00000012/   learner.pt    trained weights, in float32 where training keeps such, and optimizer
                                  node.pt       random states, task cursor, own past groups, last report
                                  manifest.json size and CRC-32 of both, written last

A checkpoint is built in a temporary folder, flushed to disk and renamed, so one with a final name is complete; the
manifest shows later damage by the disk. The newest `KEEP` are kept, and in `checkpoints/best` the one that was the
newest at the last `keep_best`: hard links, which take the space of one checkpoint once newer ones have replaced it. A
round without an update links `learner.pt` of the previous one instead of writing it again.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import shutil
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import torch

from codezero.errors import CheckpointError, told_as
from codezero.runtime.amounts import gib
from codezero.runtime.files import replace_file, sync_folder

logger = logging.getLogger(__name__)

KEEP = 2
FORMAT = 2
READABLE = (1, 2)
"""The formats that can be read. Format 1 had bfloat16 weights, and their float32 masters beside the optimizer."""
_LEARNER, _NODE, _MANIFEST = "learner.pt", "node.pt", "manifest.json"
BEST = "best"
"""The name of the best checkpoint's folder."""
_TEMPORARY_PREFIX = ".saving-"
_BEFORE = f"{_TEMPORARY_PREFIX}before"
"""The best checkpoint until a new one is in its place."""
_READ_BYTES = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A saved state that agrees with its manifest."""

    round: int
    learner: Mapping[str, Any]
    node: Mapping[str, Any]


class CheckpointStore:
    """The checkpoints of one folder, which belongs to one node at a time."""

    def __init__(self, folder: Path) -> None:
        """Removes remains of a killed save, and puts back the best checkpoint that it was to replace. Raises
        CheckpointError: the folder cannot be made or written."""
        self._folder = folder
        self._linkable: tuple[int, Path, dict[str, int]] | None = None
        """The policy version saved or loaded last, its learner file, and that file's entry in the manifest."""
        self._damaged: set[str] = set()
        """The names of checkpoints that `load_latest` skipped."""
        with told_as(CheckpointError, f"cannot use {folder} for checkpoints", "give another state_dir"):
            folder.mkdir(parents=True, exist_ok=True)
            if (before := folder / _BEFORE).exists() and not self.best.exists():
                before.rename(self.best)
            for leftover in folder.glob(_TEMPORARY_PREFIX + "*"):
                shutil.rmtree(leftover)

    def save(self, round_number: int, policy_version: int, learner: Mapping[str, Any], node: Mapping[str, Any]) -> Path:
        """Saves a finished round. Returns its folder, which is kept during the next `KEEP` - 1 saves. `learner` is not
        written again if `policy_version` is that of the last save.

        Raises CheckpointError: it cannot be written; earlier checkpoints are not changed then.
        """
        building = self._folder / f"{_TEMPORARY_PREFIX}{round_number:08d}"
        final = self._folder / _name(round_number)
        try:
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir()
            files = {_LEARNER: self._put_learner(building / _LEARNER, policy_version, learner)}
            files[_NODE] = _write_tensors(building / _NODE, node)
            manifest = {"format": FORMAT, "round": round_number, "policy_version": policy_version, "files": files}
            replace_file(building / _MANIFEST, json.dumps(manifest), sync=True)
            sync_folder(building)
            shutil.rmtree(final, ignore_errors=True)  # always a damaged one: a good one is never overwritten
            os.replace(building, final)
            sync_folder(self._folder)
            self._linkable = (policy_version, final / _LEARNER, files[_LEARNER])
            self._damaged.discard(final.name)
        except (OSError, RuntimeError) as error:  # torch's writer reports a full disk as RuntimeError
            shutil.rmtree(building, ignore_errors=True)
            raise CheckpointError(self._cannot_save(round_number, error)) from error
        saved = _newest_first(self._folder)
        # Newer ones were skipped as damaged, and older ones may have been.
        kept = [path for path in saved if path.name <= final.name and path.name not in self._damaged][:KEEP]
        for old in saved:
            if old not in kept:
                shutil.rmtree(old, ignore_errors=True)
        return final

    def load_latest(self) -> Checkpoint | None:
        """Returns the newest undamaged checkpoint; skips damaged ones with a warning. None if none was ever saved.

        Raises CheckpointError: there are checkpoints and all are damaged.
        """
        candidates = _newest_first(self._folder)
        for path in candidates:
            try:
                manifest, found = _read(path)
                self._linkable = (manifest["policy_version"], path / _LEARNER, manifest["files"][_LEARNER])
                return found
            except _DAMAGED as error:
                self._damaged.add(path.name)
                logger.warning(
                    "checkpoint %s is damaged and skipped: %s. The one before is tried, which costs the rounds "
                    "between; check the disk if it happens again",
                    path.name,
                    error,
                )
        if candidates:
            raise CheckpointError(
                f"all {len(candidates)} checkpoints in {self._folder} are damaged: restore one from a backup, or move "
                "the folder away to start from the model's own weights"
            )
        return None

    def load_best(self) -> Checkpoint:
        """Returns the best checkpoint. Raises CheckpointError: there is none, or it is damaged."""
        return _read_or_refuse(self.best, "give the state_dir alone for the newest checkpoint")

    def load_named(self, name: str) -> Checkpoint:
        """Returns the checkpoint of this name and no other. Raises CheckpointError: there is none, or it is damaged."""
        return _read_or_refuse(self._folder / name, "start again, after moving it away if it is still there")

    @property
    def best(self) -> Path:
        """The folder of the best checkpoint, if there is one."""
        return self._folder / BEST

    def keep_best(self) -> bool:
        """Keeps the checkpoint that was saved or loaded last as the best, in place of the former best. Returns False if
        there is none, or if it cannot be kept, which is logged as a warning."""
        if self._linkable is None:
            return False
        newest = self._linkable[1].parent
        building, before = self._folder / f"{_TEMPORARY_PREFIX}{BEST}", self._folder / _BEFORE
        try:
            if shutil.disk_usage(self._folder).free < 2 * (newest / _LEARNER).stat().st_size:
                raise OSError(0, "too little space for two more checkpoints")
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir()
            for name in (_LEARNER, _NODE, _MANIFEST):
                _link_or_copy(newest / name, building / name)
            sync_folder(building)
            if self.best.exists():
                os.replace(self.best, before)
            os.replace(building, self.best)
            sync_folder(self._folder)
            shutil.rmtree(before, ignore_errors=True)
        except OSError as error:
            logger.warning(
                "the best checkpoint is not kept: %s. Free space, or leave it: training continues", error.strerror
            )
            return False
        return True

    def _put_learner(self, target: Path, policy_version: int, learner: Mapping[str, Any]) -> dict[str, int]:
        if self._linkable is not None and self._linkable[0] == policy_version:
            try:
                os.link(self._linkable[1], target)
                return self._linkable[2]
            except OSError as error:
                logger.debug("no hard link to %s: %s", self._linkable[1], error)  # some file systems have none
        return _write_tensors(target, learner)

    def _cannot_save(self, round_number: int, error: Exception) -> str:
        kept = _newest_first(self._folder)
        rest = f"the last saved one is {kept[0].name}" if kept else "nothing was saved before"
        free = ""
        with suppress(OSError):  # the folder may be gone, with its disk
            free = f"; {gib(shutil.disk_usage(self._folder).free)} free"
        # torch finishes its file after the write that failed, and tells of positions in it then.
        cause = error.__context__ if isinstance(error.__context__, OSError) else error
        reason = (cause.strerror if isinstance(cause, OSError) else None) or str(error).splitlines()[0]
        return (
            f"cannot save round {round_number} in {self._folder} ({reason}{free}); {rest}: free "
            "space or give another state_dir"
        )


def newest_weights(folder: Path, known: int) -> tuple[int, dict[str, torch.Tensor]] | None:
    """Returns the round and the trained weights of the newest checkpoint in a folder to which another process may be
    saving; None if that round is `known`, or if there is no checkpoint. One that cannot be read is logged, and the one
    before it is tried."""
    for path in _newest_first(folder):
        if path.name == _name(known):
            break
        try:
            return int(_read_manifest(path)["round"]), saved_weights(path)
        except _DAMAGED as error:
            logger.warning("%s cannot be read (%s). Nothing has to be done: an earlier one is used", path, error)
    return None


def saved_weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    """Returns the trained weights in a checkpoint's folder, mapped into memory: they stay readable when the folder is
    removed. Raises OSError, RuntimeError or ValueError: it is gone or damaged."""
    saved = torch.load(checkpoint / _LEARNER, map_location="cpu", weights_only=True, mmap=True)
    weights: dict[str, torch.Tensor] = saved["weights"]
    return weights


def crc_of(checkpoint: Path) -> str:
    """Returns the CRC-32 of a checkpoint's learner in hex, as its manifest says; empty if that cannot be read."""
    try:
        return f"{json.loads((checkpoint / _MANIFEST).read_bytes())['files'][_LEARNER]['crc32']:08x}"
    except _DAMAGED:
        return ""


def report_of(checkpoint: Path) -> dict[str, Any] | None:
    """Returns the report of a checkpoint's round, as `dataclasses.asdict` gives it; None if there is no checkpoint, or
    its file is damaged."""
    try:
        _read_manifest(checkpoint, (_NODE,))
        report: dict[str, Any] = _read_tensors(checkpoint / _NODE)["report"]
    except _DAMAGED:
        return None
    return report


def trainable_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Returns the weights that training changes, by name: all parameters, or those of the adapters; tied ones once."""
    return {name: weight.detach() for name, weight in model.named_parameters() if weight.requires_grad}


@torch.no_grad()
def restore_weights(current: Mapping[str, torch.Tensor], saved: Mapping[str, torch.Tensor]) -> None:
    """Copies saved weights into the current ones. Raises CheckpointError: they belong to another model or method."""
    wrong = sorted(current.keys() ^ saved.keys()) or [n for n in current if current[n].shape != saved[n].shape]
    if wrong:
        raise CheckpointError(
            f"the checkpoint is of another model: {len(wrong)} weights differ, the first is {wrong[0]}: give another "
            "state_dir"
        )
    for name, weight in current.items():
        weight.copy_(saved[name])


def _newest_first(folder: Path) -> list[Path]:
    return sorted((path for path in folder.glob("round-*") if path.is_dir()), reverse=True)


def _name(round_number: int) -> str:
    return f"round-{round_number:08d}"


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # some file systems have no hard links
        shutil.copyfile(source, target)


class _CountedFile:
    """A file to write that counts its size and CRC-32, since reading gigabytes back would take seconds."""

    def __init__(self, file: FileIO) -> None:
        self._file, self.num_bytes, self.crc32 = file, 0, 0

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.crc32 = zlib.crc32(view, self.crc32)
        self.num_bytes += len(view)
        rest = view
        while rest:  # the system writes 2 GiB at a time
            rest = rest[self._file.write(rest) :]
        return len(view)

    def flush(self) -> None:
        """Does nothing, since nothing is buffered."""


def _write_tensors(path: Path, values: Mapping[str, Any]) -> dict[str, int]:
    with path.open("wb", buffering=0) as file:
        counted = _CountedFile(file)
        torch.save(dict(values), counted)  # type: ignore[arg-type]  # it calls these two methods only
        os.fsync(file.fileno())
    return {"bytes": counted.num_bytes, "crc32": counted.crc32}


def _fingerprint(path: Path) -> dict[str, int]:
    crc = 0
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            crc = zlib.crc32(block, crc)
    return {"bytes": path.stat().st_size, "crc32": crc}


def _read_manifest(path: Path, names: Sequence[str] = (_LEARNER, _NODE)) -> dict[str, Any]:
    """Reads the manifest and compares these files with it. Raises ValueError: they differ."""
    manifest: dict[str, Any] = json.loads((path / _MANIFEST).read_bytes())
    if manifest["format"] not in READABLE:
        raise ValueError(f"format {manifest['format']}, this codezero reads {' and '.join(map(str, READABLE))}")
    for name in names:
        expected, found = manifest["files"][name], _fingerprint(path / name)
        if found != expected:
            raise ValueError(f"{name} is {found}, the manifest says {expected}")
    return manifest


_DAMAGED = (OSError, ValueError, KeyError, TypeError, RuntimeError, EOFError, pickle.UnpicklingError)


def _read(path: Path) -> tuple[dict[str, Any], Checkpoint]:
    """Returns the manifest and the checkpoint in a folder. Raises an error of `_DAMAGED`: it is damaged."""
    manifest = _read_manifest(path)
    found = Checkpoint(
        round=manifest["round"], learner=_read_tensors(path / _LEARNER), node=_read_tensors(path / _NODE)
    )
    return manifest, found


def _read_or_refuse(path: Path, do: str) -> Checkpoint:
    try:
        return _read(path)[1]
    except _DAMAGED as error:
        raise CheckpointError(f"{path} cannot be read ({error}): {do}") from error


def _read_tensors(path: Path) -> dict[str, Any]:
    values: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return values
