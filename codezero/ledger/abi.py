"""Loads the compiled contracts: their ABI, their code, and the names of their errors.

`contracts/compile.mjs` makes the artifacts beside this file, so that nodes need no compiler.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from eth_utils.abi import abi_to_signature

from codezero.ledger.contract import selector

ARTIFACTS = ("SwarmCoordinator", "PredictionMarket")


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One compiled contract."""

    abi: Sequence[Mapping[str, Any]]
    bytecode: str
    """The code of a deploying transaction without the constructor's arguments, as hex with 0x."""


@cache
def load(contract: str) -> Artifact:
    """Loads the artifact of one of ARTIFACTS."""
    text = resources.files(__package__).joinpath("artifacts", f"{contract}.json").read_text(encoding="utf-8")
    content = json.loads(text)
    return Artifact(abi=tuple(content["abi"]), bytecode=content["bytecode"])


@cache
def error_names() -> Mapping[str, str]:
    """Returns the name of every error of our contracts by selector, for `contract.error_name`."""
    entries = [entry for contract in ARTIFACTS for entry in load(contract).abi if entry["type"] == "error"]
    return {selector(abi_to_signature(entry)): entry["name"] for entry in entries}  # type: ignore[arg-type]
