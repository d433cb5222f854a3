"""Reads tests in the formats of LiveCodeBench and DeepCoder: JSON, plain or packed, for programs or functions.

LiveCodeBench packs its private tests as base64 of zlib of a pickle of one string. A pickle is a program, so none is
ever loaded: its opcodes are listed, and it is accepted only if they do nothing but give one string.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import zlib
from collections.abc import Mapping, Sequence

from codezero.harness.problems import MAX_SUITE_CHARS, BenchProblem, examples, function, program, statement
from codezero.tasks.rows import BadRow, pairs
from codezero.tasks.testcases import StdinExample

_STRINGS = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE")
_NOTHING_DONE = ("PROTO", "FRAME", "MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT", "STOP")


def from_json(value: object, field: str) -> list[Mapping[str, object]]:
    """Returns the tests of a field, which is JSON text or, from parquet, its parsed value; [] if empty. Raises BadRow:
    it has another form."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else []
        except (ValueError, RecursionError):
            raise BadRow(f"{field} is not JSON") from None
    if isinstance(value, Mapping):
        kind = "functional" if value.get("fn_name") else "stdin"
        name = {"func_name": value.get("fn_name")}
        found = pairs(value, "inputs", "outputs", field)
        value = [{"input": given, "output": out, "testtype": kind, "metadata": name} for given, out in found]
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(case, Mapping) for case in value):
        raise BadRow(f"{field} is not a list of tests")
    return value


def from_packed(value: object) -> list[Mapping[str, object]]:
    """Returns LiveCodeBench's private tests, from JSON text or that text packed. Raises BadRow: it is neither."""
    if not isinstance(value, str) or value.lstrip()[:1] in ("", "[", "{"):
        return from_json(value, "private_test_cases")
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(value, validate=True), MAX_SUITE_CHARS)
    except (binascii.Error, ValueError, zlib.error):
        raise BadRow("private_test_cases is neither JSON nor packed JSON") from None
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise BadRow(f"private_test_cases is longer than {MAX_SUITE_CHARS >> 20} MiB, or cut off")
    return from_json(_only_string(data), "private_test_cases")


def _only_string(pickled: bytes) -> str:
    """Returns the string of a pickle without loading it. Raises BadRow: it holds anything but one string."""
    found: list[object] = []
    try:
        for opcode, argument, _ in pickletools.genops(pickled):
            if opcode.name in _STRINGS:
                found.append(argument)
            elif opcode.name not in _NOTHING_DONE:
                raise BadRow("private_test_cases is a pickle of more than one string, which is never loaded")
    except (ValueError, IndexError, OverflowError) as error:
        raise BadRow("private_test_cases is neither JSON nor packed JSON") from error
    if len(found) != 1 or not isinstance(found[0], str):
        raise BadRow("private_test_cases is a pickle of more than one string, which is never loaded")
    return found[0]


def problem(
    row: Mapping[str, object],
    name: str,
    key: str,
    public: Sequence[Mapping[str, object]],
    hidden: Sequence[Mapping[str, object]],
) -> BenchProblem:
    """Returns a problem of a program or a function, whichever its tests say; `key` is the field of its statement.
    Raises BadRow: they are missing, of both kinds, or name no function."""
    text, starter = statement(row, key), row.get("starter_code")
    cases = [*public, *hidden]
    kinds = {_is_functional(case) for case in cases}
    if len(kinds) != 1:
        raise BadRow("there are no tests" if not kinds else "tests are of programs and of functions")
    if not kinds.pop():
        return program(name, text, examples(list(public), "tests"), examples(list(hidden), "tests"))
    called = next((found for one in (row, *cases) if (found := _function_name(one.get("metadata")))), "")
    if not called:
        raise BadRow("a functional test names no function")
    arguments = [[_arguments(case) for case in part] for part in (public, hidden)]
    return function(name, text, starter if isinstance(starter, str) else "", called, *arguments)


def _is_functional(case: Mapping[str, object]) -> bool:
    return case.get("testtype", case.get("type")) in ("functional", "function_call")


def _function_name(metadata: object) -> str:
    if isinstance(metadata, str):
        try:
            metadata = json.loads(metadata)
        except (ValueError, RecursionError):
            return ""
    name = metadata.get("func_name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) else ""


def _arguments(case: Mapping[str, object]) -> StdinExample:
    """Returns the arguments as JSON lines and the result as JSON; a case may have them as text or as values."""
    given, expected = case.get("input"), case.get("output")
    try:
        if isinstance(given, list):
            given = "\n".join(json.dumps(argument) for argument in given)
        if not isinstance(expected, str):
            expected = json.dumps(expected)
    except (TypeError, ValueError, RecursionError):  # parquet has bytes and dates
        raise BadRow("a test has a value that JSON does not have") from None
    return examples([{"input": given, "output": expected}], "tests")[0]
