"""Finds configuration files that the user has edited: keeps and reports them, and restores the shipped ones on request.

In a checkout the shipped files are those of its commit. In a folder that CODEZERO_CONFIG_DIR names, such as a volume of
a container, they are those of the package.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from codezero.config import checkout
from codezero.config.load import RESET_ENV
from codezero.config.names import config_dir
from codezero.errors import ConfigError
from codezero.launch.terminal import is_on
from codezero.runtime.amounts import counted, listed
from codezero.runtime.console import Console
from codezero.runtime.files import replace_file

_NOTE = ".shipped"
"""The name of a file with the hashes of what releases have shipped: such a file is nobody's edit, and is renewed."""
_MOST_TOLD = 10


def report_or_restore_edits(environment: Mapping[str, str], console: Console) -> None:
    """Copies files that are missing or of an earlier release into the user's folder and prints which others differ from
    the shipped ones; with CODEZERO_RESET_CONFIG=1 it backs those up and restores the shipped ones.

    Raises ConfigError: the variable has an impossible value, or the folder cannot be written.
    """
    resets = is_on(environment, RESET_ENV)
    folder = config_dir()
    shipped = _shipped(folder)
    if shipped is None:
        if resets:
            raise ConfigError(f"{RESET_ENV}: {folder} is not a git checkout, so what was shipped is not known here")
        return
    try:
        _report_or_restore(folder, shipped, resets, console)
    except OSError as error:
        raise ConfigError(
            f"cannot update the configuration in {folder}: {error.strerror} ({error.filename})"
        ) from error


def edited() -> dict[str, str] | None:
    """Returns how each file that is not as shipped differs, by its name, or None where that is not known. Raises
    OSError."""
    folder = config_dir()
    shipped = _shipped(folder)
    if shipped is None:
        return None
    differ, missing = _compared(folder, shipped)
    return differ | dict.fromkeys(missing, "missing, or of an earlier release")


def _report_or_restore(folder: Path, shipped: Mapping[str, bytes], resets: bool, console: Console) -> None:
    differ, missing = _compared(folder, shipped)
    edited = list(differ)
    if edited and resets:
        backup = folder / f"backup-{time.strftime('%Y%m%d-%H%M%S')}"
        for name in edited:
            (backup / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(folder / name, backup / name)
        console.line(f"configuration: {listed(edited, _MOST_TOLD)} as shipped again; yours are in {backup}")
    elif edited:
        console.line(f"configuration: yours differ from the shipped ones and are kept ({RESET_ENV}=1 puts those back)")
        for name in edited[:_MOST_TOLD]:
            console.line(f"  {name}: {differ[name]}")
    for name in [*missing, *(edited if resets else ())]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        replace_file(folder / name, shipped[name])  # half a file would count as the user's edit
    if folder != checkout.CONFIGS and os.access(folder, os.W_OK):
        replace_file(folder / _NOTE, "\n".join(sorted(_noted(folder) | set(map(_hash, shipped.values())))))


def _compared(folder: Path, shipped: Mapping[str, bytes]) -> tuple[dict[str, str], list[str]]:
    """Returns how each file that was edited differs from the shipped one, by its name, and the names of those that are
    missing or of an earlier release."""
    noted = _noted(folder)
    found = {name: (folder / name).read_bytes() for name in shipped if (folder / name).is_file()}
    own = {name: content for name, content in found.items() if content == shipped[name] or _hash(content) not in noted}
    differ = {name: _difference(shipped[name], content) for name, content in own.items() if content != shipped[name]}
    return differ, [name for name in shipped if name not in own]


def _noted(folder: Path) -> set[str]:
    return set((folder / _NOTE).read_text().split()) if (folder / _NOTE).exists() else set()


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _shipped(folder: Path) -> dict[str, bytes] | None:
    """Returns the shipped versions of the folder's files, in a checkout of those that were edited; None where they are
    not known."""
    if folder == checkout.CONFIGS:
        return _of_commit(folder)
    return {str(path.relative_to(checkout.CONFIGS)): path.read_bytes() for path in checkout.CONFIGS.rglob("*.yaml")}


def _of_commit(folder: Path) -> dict[str, bytes] | None:
    """Returns the commit's version of each file that git reports as changed, or None where there is no checkout."""
    if checkout.ROOT is None:
        return None  # a virtual environment may lie in the checkout of another project
    changed = checkout.git(folder, "diff", "--name-only", "--relative", "-z", "HEAD", "--", ".")
    if changed is None:
        return None
    names = [os.fsdecode(name) for name in changed.split(b"\0") if name.endswith(b".yaml")]
    found = {name: checkout.git(folder, "show", f"HEAD:./{name}") for name in names}
    return {name: content for name, content in found.items() if content is not None}


def _difference(shipped: bytes, own: bytes) -> str:
    """Returns the first lines that only the user's file has, or else the number of shipped lines that it lacks."""
    before, after = (content.decode("utf-8", "replace").splitlines() for content in (shipped, own))
    more = [line.strip() for line in after if line not in before and line.strip()]
    fewer = sum(line not in after for line in before if line.strip())
    said = "; ".join(more[:3]) + (f"; and {len(more) - 3} more lines" if len(more) > 3 else "")
    return said or f"{counted(fewer, 'shipped line')} gone" if fewer or more else "order or blanks"
