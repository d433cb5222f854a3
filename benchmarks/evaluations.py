"""Evaluations that are made once: kept by the hash of the weights and the settings that they were made with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import harness


def evaluated(
    weights: Path,
    settings: Mapping[str, Any],
    evaluate: Callable[[], Any],
    folder: Path = harness.STATE / "evaluations",
) -> Any:
    """Returns the result of `evaluate`, as JSON; that of the last time where the same weights, a file or a folder of
    them, were evaluated with the same settings (problems, samples, temperature, seed, ...). The code is no part of
    that: where it changes what comes out, the settings must say so. Raises FileNotFoundError: there are no weights."""
    digest = hash_of(weights)
    key = hashlib.sha256(json.dumps([digest, settings], sort_keys=True).encode()).hexdigest()[:16]
    path = folder / f"{key}.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))["found"]
    found = evaluate()
    harness.write(path, json.dumps({"weights": digest, "settings": settings, "found": found}) + "\n")
    return found


def hash_of(weights: Path) -> str:
    """sha256 of a file, or of a folder's files with their names."""
    digest = hashlib.sha256()
    files = sorted(path for path in weights.rglob("*") if path.is_file()) if weights.is_dir() else [weights]
    if not files:
        raise FileNotFoundError(f"there are no weights in {weights}")
    for path in files:
        digest.update(f"{path.relative_to(weights)}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()
