"""Checks of Python, and of installed packages against codezero's requirements and the versions it was tested with."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from codezero.config import checkout
from codezero.doctor.case import Case
from codezero.doctor.finding import Finding, error, info, ok, warning

OLDEST, NEWEST = (3, 10), (3, 13)
_SHOWN = 6
_AGAIN = checkout.INSTALL_AGAIN


def check_python(case: Case) -> Iterator[Finding]:
    found = (
        f"codezero {checkout.version()}, Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    )
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        yield error("python", found, "codezero needs 3.10 to 3.13", "PYTHON=python3.12 ./run_rl_swarm.sh")
    else:
        yield ok("python", found)
    if sys.prefix == sys.base_prefix and "CODEZERO_VENV" not in case.environment:
        yield info(
            "python",
            f"{sys.prefix} is no virtual environment",
            "other programs may change the packages in it",
            f"start with {checkout.START}, which makes .venv"
            if checkout.ROOT
            else "install codezero in one: python3 -m venv",
        )


def check_packages(case: Case) -> Iterator[Finding]:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    installed = {
        canonicalize_name(found.metadata["Name"]): found.version
        for found in metadata.distributions()
        if found.metadata["Name"]
    }
    required = [Requirement(text) for text in _required()]
    required = [one for one in required if one.marker is None or one.marker.evaluate({"extra": ""})]
    missing = [str(one) for one in required if canonicalize_name(one.name) not in installed]
    wrong = [
        f"{one.name} {installed[canonicalize_name(one.name)]} (wants {one.specifier})"
        for one in required
        if canonicalize_name(one.name) in installed
        and not one.specifier.contains(installed[canonicalize_name(one.name)], prereleases=True)
    ]
    if missing:
        yield error("packages", f"missing: {_some(missing)}", "parts of codezero cannot be imported", _AGAIN)
    if wrong:
        yield warning("packages", f"of another version: {_some(wrong)}", "codezero is not tested with these", _AGAIN)
    if not missing and not wrong:
        yield ok("packages", f"{len(required)} that codezero asks for are there")
    yield from _broken(installed, Requirement, canonicalize_name)
    yield from _drift(installed, Requirement, canonicalize_name)


def _required() -> list[str]:
    """Returns codezero's requirements, from its installed metadata or else from pyproject.toml of the checkout."""
    try:
        return metadata.requires("codezero") or []
    except metadata.PackageNotFoundError:
        pass
    if checkout.ROOT is None or sys.version_info < (3, 11):
        return []
    import tomllib

    try:
        project = tomllib.loads((checkout.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError):
        return []
    return list(project["project"]["dependencies"])


def _broken(installed: dict[Any, str], requirement: Any, canonical: Any) -> Iterator[Finding]:
    """Warns of packages whose own requirements are not met. Generated code of protobuf, for one, refuses an older
    protobuf at import (VersionError), and grpcio does likewise."""
    for name in ("hivemind", "grpcio-tools", "transformers", "peft", "huggingface-hub", "datasets"):
        try:
            asks = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        for one in map(requirement, asks):
            if one.marker is not None and not one.marker.evaluate({"extra": ""}):
                continue
            version = installed.get(canonical(one.name))
            if version is None or not one.specifier.contains(version, prereleases=True):
                yield warning(
                    "packages",
                    f"{name} wants {one.name}{one.specifier}, and {version or 'none'} is there",
                    "it may fail at import or later, such as with protobuf's VersionError",
                    _AGAIN,
                )


def _drift(installed: dict[Any, str], requirement: Any, canonical: Any) -> Iterator[Finding]:
    """Reports versions other than those that setup pins: they may work, but are untested."""
    try:
        lines = checkout.CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    pinned = [requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    others = [
        f"{one.name} {version} (tried with {str(one.specifier).removeprefix('==')})"
        for one in pinned
        if one.marker is None or one.marker.evaluate()
        for version in [installed.get(canonical(one.name))]
        if version is not None and not one.specifier.contains(version, prereleases=True)
    ]
    if others:
        yield info(
            "pins",
            f"{len(others)} differ{'s' * (len(others) == 1)} from scripts/constraints.txt: {_some(others)}",
            "",
            _AGAIN,
        )
    else:
        yield ok("pins", "versions are those of scripts/constraints.txt")


def _some(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
