"""Checks of Python, of installed packages against codezero's requirements and the versions it was tested with, and of
settings files against those shipped."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from codezero.config import checkout
from codezero.doctor.case import ExaminedNode
from codezero.doctor.finding import Finding, error, info, ok, warning
from codezero.runtime.amounts import listed

OLDEST, NEWEST = (3, 10), (3, 13)
_SHOWN = 6
_FILES_SHOWN = 5
_AGAIN = checkout.INSTALL_AGAIN


def check_python(case: ExaminedNode) -> Iterator[Finding]:
    found = (
        f"codezero {checkout.version()}, Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    )
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        makes = "remove .venv and start it anew: PYTHON=python3.12 ./run_rl_swarm.sh"
        do = makes if checkout.ROOT else "install codezero for one of these: python3.12 -m venv"
        yield error("python", found, "codezero needs 3.10 to 3.13", do)
    else:
        yield ok("python", found)
    if sys.prefix == sys.base_prefix and "CODEZERO_VENV" not in case.environment:
        makes = f"start with {checkout.START}, which makes .venv"
        do = makes if checkout.ROOT else "install codezero in one: python3 -m venv"
        means = "other programs may change the packages in it"
        yield info("python", f"{sys.prefix} is not a virtual environment", means, do)


def check_packages(case: ExaminedNode) -> Iterator[Finding]:
    there = [one for one in metadata.distributions() if one.metadata["Name"]]
    installed = {canonicalize_name(one.metadata["Name"]): one.version for one in there}
    unmet = list(_unmet(_required(), installed))
    missing = [str(one) for one, version in unmet if version is None]
    wrong = [f"{one.name} {version} (wants {one.specifier})" for one, version in unmet if version is not None]
    if missing:
        yield error("packages", f"missing: {listed(missing, _SHOWN)}", "parts of codezero cannot be imported", _AGAIN)
    if wrong:
        means = "codezero is not tested with these"
        yield warning("packages", f"of another version: {listed(wrong, _SHOWN)}", means, _AGAIN)
    if not unmet:
        yield ok("packages", "those that codezero asks for are there")
    # Generated code of protobuf, for one, refuses an older protobuf at import (VersionError), and grpcio does likewise.
    for name in ("hivemind", "grpcio-tools", "transformers", "peft", "huggingface-hub", "datasets"):
        for one, version in _unmet(_requirements_of(name), installed):
            found = f"{name} wants {one.name}{one.specifier}, and {version or 'none'} is there"
            means = "it may fail at import or later, such as with protobuf's VersionError"
            yield warning("packages", found, means, _AGAIN)
    yield from _drift(installed)


def _unmet(
    requirements: Iterable[str], installed: Mapping[NormalizedName, str]
) -> Iterator[tuple[Requirement, str | None]]:
    """Yields the requirements that apply here and are not met, each with the installed version, None without one."""
    for one in map(Requirement, requirements):
        version = installed.get(canonicalize_name(one.name))
        applies = one.marker is None or one.marker.evaluate({"extra": ""})
        if applies and (version is None or not one.specifier.contains(version, prereleases=True)):
            yield one, version


def _requirements_of(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


def _required() -> list[str]:
    """Returns codezero's requirements, from its installed metadata or else from pyproject.toml of the checkout."""
    if (found := _requirements_of("codezero")) or checkout.ROOT is None or sys.version_info < (3, 11):
        return found
    import tomllib

    project = tomllib.loads((checkout.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return list(project["project"]["dependencies"])


def _drift(installed: Mapping[NormalizedName, str]) -> Iterator[Finding]:
    """Reports versions other than those that setup pins: they may work, but are untested."""
    try:
        lines = checkout.CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    pinned = [line for line in lines if line.strip() and not line.startswith("#")]
    others = [
        f"{one.name} {version} (tried with {str(one.specifier).removeprefix('==')})"
        for one, version in _unmet(pinned, installed)
        if version is not None
    ]
    if others:
        found = f"{len(others)} differ{'s' * (len(others) == 1)} from scripts/constraints.txt: {listed(others, _SHOWN)}"
        yield info("pins", found, "", _AGAIN)
    else:
        yield ok("pins", "versions are those of scripts/constraints.txt")


def check_files(case: ExaminedNode) -> Iterator[Finding]:
    # imported here: where packages are missing, the other checks of this module say which
    from codezero.config.load import RESET_ENV
    from codezero.config.names import config_dir
    from codezero.launch import configs

    folder = config_dir()
    try:
        found = configs.edited()
    except OSError as fault:
        do = "correct its rights"
        yield error("settings files", f"cannot read {fault.filename}: {fault.strerror}", "no node can start", do)
        return
    if found is None:
        yield info("settings files", f"those in {folder}; what was shipped is not known here (no git checkout)")
    elif found:
        shown = "; ".join(f"{name}: {how}" for name, how in list(found.items())[:_FILES_SHOWN])
        more = f"; and {len(found) - _FILES_SHOWN} more" if len(found) > _FILES_SHOWN else ""
        told = f"{len(found)} in {folder} differ{'s' * (len(found) == 1)} from what was shipped: {shown}{more}"
        do = f"{RESET_ENV}=1 {checkout.START} puts the shipped ones back and keeps a copy of yours"
        yield info("settings files", told, "yours are used", do)
    else:
        yield ok("settings files", f"those in {folder} are as shipped")
