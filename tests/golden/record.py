"""A record as JSON that people can read, and what differs between two."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("golden_round.json")
REFRESH = "python -m tests.golden"
WIDTH = 118
MEASURED = ("logprobs", "loss", "grad_norm")
"""Values that depend on the order in which a CPU adds; the rest of the record does not."""
MEASURED_WITHIN, EXACT_WITHIN = {"rel_tol": 1e-3, "abs_tol": 1e-5}, {"rel_tol": 1e-9}


def readable(value: Any) -> Any:
    """Plain JSON values, in which a text of several lines is a list of them."""
    if isinstance(value, Mapping):
        return {str(key): readable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [readable(inner) for inner in value]
    return value.split("\n") if isinstance(value, str) and "\n" in value else value


def dumps(value: Any, indent: str = "") -> str:
    """JSON in which whatever fits on a line stands on one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    more = indent + " "
    if isinstance(value, dict):
        inner = [f"{more}{json.dumps(key)}: {dumps(each, more)}" for key, each in value.items()]
        return "{\n" + ",\n".join(inner) + f"\n{indent}}}"
    return "[\n" + ",\n".join(more + dumps(each, more) for each in value) + f"\n{indent}]"


def differences(wanted: Any, found: Any, path: str = "") -> Iterator[str]:
    """A line for each value that is another one; empty for records of the same round."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted({*wanted, *found}):
            if key not in found:
                yield f"{path}{key}: gone, was {wanted[key]!r}"
            elif key not in wanted:
                yield f"{path}{key}: new, is {found[key]!r}"
            else:
                yield from differences(wanted[key], found[key], f"{path}{key}/")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for number, (before, now) in enumerate(zip(wanted, found, strict=True)):
            yield from differences(before, now, f"{path}{number}/")
    elif isinstance(wanted, float) and isinstance(found, float):
        within = MEASURED_WITHIN if any(name in path.split("/") for name in MEASURED) else EXACT_WITHIN
        if not math.isclose(wanted, found, **within):
            yield f"{path[:-1]}: was {wanted!r}, is {found!r}"
    elif wanted != found:
        yield f"{path[:-1]}: was {wanted!r}, is {found!r}"
