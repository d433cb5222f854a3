"""`codezero.json`, the list of contents of a prepared model folder, and the checks that rest on it.

The file is written last, so a folder that has one was finished.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from codezero.errors import ModelError

MANIFEST = "codezero.json"
FORMAT = 1
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    name: str
    """Catalogue name or hub id."""
    source: str
    """The pinned file's name, or the hub's commit."""
    source_sha256: str | None
    """Of the pinned file; None for a hub snapshot, whose weights are listed in `files` as they came."""
    converter: int | None
    """Version of the conversion that made the folder; None for a hub snapshot."""
    files: dict[str, FileRecord]
    """By name, every file of the folder but this one."""


def sha256_of(path: Path, label: str) -> str:
    """Hex digest of a file, with a progress bar called `label`. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file, byte_bar(path.stat().st_size, label) as bar:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            bar.update(len(chunk))
    return digest.hexdigest()


def byte_bar(total: int, label: str) -> tqdm[Any]:
    """A progress bar on stderr that counts bytes; silent where stderr is no terminal."""
    return tqdm(total=total, desc=label, unit="B", unit_scale=True, unit_divisor=1024, disable=None)


def describe_files(folder: Path, label: str) -> dict[str, FileRecord]:
    """Size and hash of every file directly in `folder`. Raises OSError."""
    return {
        path.name: FileRecord(bytes=path.stat().st_size, sha256=sha256_of(path, f"{label}: hashing {path.name}"))
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != MANIFEST
    }


def write(folder: Path, manifest: Manifest) -> None:
    """Raises OSError."""
    (folder / MANIFEST).write_text(json.dumps({"format": FORMAT, **asdict(manifest)}, indent=2) + "\n")


def read(folder: Path) -> Manifest | None:
    """The manifest of a prepared folder; None where there is none, or it is of another format or unreadable."""
    try:
        fields = json.loads((folder / MANIFEST).read_text())
        if fields.pop("format") != FORMAT:
            return None
        files = {name: FileRecord(**record) for name, record in fields.pop("files").items()}
        return Manifest(files=files, **fields)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def wrong_size(folder: Path, manifest: Manifest) -> str | None:
    """What is missing or of the wrong size, in words; None if nothing is. Costs one stat a file."""
    for name, record in manifest.files.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if (size := path.stat().st_size) != record.bytes:
            return f"{name} has {size} bytes instead of {record.bytes}"
    return None


def check_contents(folder: Path, manifest: Manifest) -> None:
    """Hashes everything again. Raises ModelError naming the first file that is missing, changed or was added."""
    fault = wrong_size(folder, manifest)
    if fault is None:
        # transformers loads some files merely because they are there, adapter_config.json for one
        added = {path.name for path in folder.iterdir()} - set(manifest.files) - {MANIFEST}
        fault = f"{min(added)} does not belong there" if added else None
    for name, record in manifest.files.items() if fault is None else ():
        actual = sha256_of(folder / name, f"{manifest.name}: checking {name}")
        if actual != record.sha256:
            fault = f"{name} has SHA-256 {actual} instead of {record.sha256}"
            break
    if fault is not None:
        raise ModelError(
            f"{manifest.name} in {folder} is damaged, {fault}: run `codezero models pull {manifest.name} --force`"
        )
