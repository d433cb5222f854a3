"""What is known of the contracts without a compiler: their ABI, their code, and the names of their errors.

`contracts/compile.mjs` makes the artifacts beside this file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from eth_utils.abi import abi_to_signature, function_signature_to_4byte_selector

from codezero.errors import LedgerError

ARTIFACTS = ("SwarmCoordinator", "PredictionMarket")


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    contract: str
    abi: Sequence[Mapping[str, Any]]
    bytecode: str
    """Hex with 0x: what a deploying transaction carries, before the constructor's arguments."""
    source_sha256: str
    compiler: str

    def entry(self, signature: str) -> Mapping[str, Any]:
        """The function, event or error of a full signature, as `submitReward(uint256,uint256,int256,string)`; a name
        alone would be ambiguous, since functions are overloaded. Raises LedgerError: there is none."""
        for entry in self.abi:
            if "name" in entry and abi_to_signature(entry) == signature:  # type: ignore[arg-type]
                return entry
        raise LedgerError(f"{self.contract} has no {signature}: this is a mistake in codezero, please report it")


@cache
def load(contract: str) -> Artifact:
    """The artifact of one of ARTIFACTS."""
    text = resources.files(__package__).joinpath("artifacts", f"{contract}.json").read_text(encoding="utf-8")
    content = json.loads(text)
    return Artifact(
        contract=content["contract"],
        abi=tuple(content["abi"]),
        bytecode=content["bytecode"],
        source_sha256=content["sourceSha256"],
        compiler=content["compiler"],
    )


def selector(signature: str) -> str:
    """The first four bytes of a call or an error, as hex with 0x."""
    return "0x" + function_signature_to_4byte_selector(signature).hex()


@cache
def error_names() -> Mapping[str, str]:
    """Selector to name of every error of our contracts, for `contract.error_name`."""
    entries = [entry for contract in ARTIFACTS for entry in load(contract).abi if entry["type"] == "error"]
    return {selector(abi_to_signature(entry)): entry["name"] for entry in entries}  # type: ignore[arg-type]
