"""`codezero.json`, the list of files of a prepared model folder, and the checks by it.

The file is written last, so a folder with one is complete.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

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
    """The catalogue name or hub id."""
    source: str
    """The pinned file's name, or the hub's commit."""
    source_sha256: str | None
    """The SHA-256 of the pinned file; None for a hub snapshot, whose weights are in `files` as downloaded."""
    converter: int | None
    """The version of the conversion that made the folder; None for a hub snapshot."""
    files: dict[str, FileRecord]
    """All files of the folder but this one, by name."""


def sha256_of(path: Path, label: str) -> str:
    """Returns the hex digest of a file; shows a progress bar named `label`. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file, byte_bar(path.stat().st_size, label) as bar:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            bar.update(len(chunk))
    return digest.hexdigest()


def byte_bar(total: int, label: str) -> tqdm[Any]:
    """Returns a progress bar on stderr that counts bytes; it is silent if stderr is not a terminal."""
    return tqdm(total=total, desc=label, unit="B", unit_scale=True, unit_divisor=1024, disable=None)


def describe_files(folder: Path, label: str) -> dict[str, FileRecord]:
    """Returns size and hash of every file directly in `folder`. Raises OSError."""
    return {
        path.name: FileRecord(bytes=path.stat().st_size, sha256=sha256_of(path, f"{label}: hashing {path.name}"))
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != MANIFEST
    }


def write(folder: Path, manifest: Manifest) -> None:
    """Writes the manifest into the folder. Raises OSError."""
    (folder / MANIFEST).write_text(json.dumps({"format": FORMAT, **asdict(manifest)}, indent=2) + "\n")


def read(folder: Path) -> Manifest | None:
    """Returns the manifest of a prepared folder; None if it is missing, unreadable or of another format."""
    try:
        fields = json.loads((folder / MANIFEST).read_text())
        if fields.pop("format") != FORMAT:
            return None
        files = {name: FileRecord(**record) for name, record in fields.pop("files").items()}
        return Manifest(files=files, **fields)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def wrong_size(folder: Path, manifest: Manifest) -> str | None:
    """Returns in words which file is missing or of the wrong size; None if none is. Costs one stat per file."""
    for name, record in manifest.files.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if (size := path.stat().st_size) != record.bytes:
            return f"{name} has {size} bytes instead of {record.bytes}"
    return None


def fault_in(folder: Path, manifest: Manifest) -> str | None:
    """Hashes all files again. Returns in words which file is missing, changed or was added; None if none is."""
    if (fault := wrong_size(folder, manifest)) is not None:
        return fault
    # transformers loads some files, such as adapter_config.json, merely because they exist.
    if added := {path.name for path in folder.iterdir()} - set(manifest.files) - {MANIFEST}:
        return f"{min(added)} does not belong there"
    for name, record in manifest.files.items():
        actual = sha256_of(folder / name, f"{manifest.name}: checking {name}")
        if actual != record.sha256:
            return f"{name} has SHA-256 {actual} instead of {record.sha256}"
    return None
