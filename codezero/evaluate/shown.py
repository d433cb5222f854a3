"""Makes the texts of a task and a solution that the judge sees, without what the author addresses to it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from codezero.evaluate.normalise import reachable, stripped
from codezero.evaluate.rules.solution import BUILTINS, Requirements, read
from codezero.prompts.neutral import addresses_the_judge, looks_like_verdict, plain
from codezero.types import Task

MAX_NAME_CHARS = 40
"""The longest name that is shown: longer ones are sentences. The longest function name in MBPP has 31 characters."""
MAX_STRING_CHARS = 400
_MIN_PROSE_WORDS = 4
_PROSE_SHARE = 0.7
"""The least share of a prose text's characters in words and between them; a regular expression has a smaller one."""
_NAMES = re.compile(r"[\w\xb7\u0387.]+")
"""A name of Python, which may have two signs that are no word characters, or several names with dots between them."""
_WORD = re.compile(r"[^\W\d_]+")
REMOVED = "[removed]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTask:
    """The texts of a task that the judge sees with each attempt."""

    question: str
    tests: str
    names: Mapping[str, str]
    """The new names of those that the tests have."""
    wanted: frozenset[str] | None
    """The argument of `normalise.reachable`."""


def show_task(task: Task, requirements: Requirements) -> ShownTask:
    """Returns question and tests, which ask for `requirements`, without lines that address the judge. Names in the
    tests that look like a verdict, are very long, or have characters beyond ASCII become v1, v2, ... in both."""
    names = {name: f"v{i}" for i, name in enumerate(_suspicious(read(task.tests)), start=1)}
    question, tests = (_line_by_line(_renamed(text, names)) for text in (task.question, task.tests))
    return ShownTask(question=question, tests=tests, names=names, wanted=requirements.wanted)


def show_code(task: ShownTask, code: str) -> str:
    """Returns the part of the code that the tests depend on, without comments, docstrings and what is unreachable
    (`normalise`). Names become v1, v2, ... as in the tests. Strings that look like a verdict, are prose, very long or
    have letters beyond ASCII become 'text1', 'text2', ..., unless question or tests have them.

    Raises ValueError: the code does not parse (rule `parses`), or Python cannot print it.
    """
    tree = reachable(stripped(code), task.wanted)
    new = enumerate(_suspicious(tree, task.names), start=len(task.names) + 1)
    _rename(tree, {**task.names, **{name: f"v{i}" for i, name in new}})
    _replace_strings(tree, task.question, task.tests)
    return plain(ast.unparse(ast.fix_missing_locations(tree)))


def _line_by_line(text: str) -> str:
    """Returns a text of a task with `REMOVED` for each line that addresses the judge."""
    return "\n".join(REMOVED if addresses_the_judge(line) else line for line in plain(text).split("\n"))


def _renamed(text: str, names: dict[str, str]) -> str:
    """Returns the text with the new names; those of modules may have dots."""

    def new(found: re.Match[str]) -> str:
        return names.get(found[0]) or ".".join(names.get(name, name) for name in found[0].split("."))

    return _NAMES.sub(new, text)


def _identifiers(node: ast.AST) -> Iterator[tuple[str, str | list[str]]]:
    """Yields (field, name or names) of a node: every text of the node that is not the value of a constant."""
    if isinstance(node, ast.Constant):
        return
    for name, value in ast.iter_fields(node):
        is_list = isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)
        if name != "type_comment" and (isinstance(value, str) or is_list):
            yield name, value


def _suspicious(tree: ast.Module | str, known: Iterable[str] = ()) -> list[str]:
    """Returns the names to replace, in the order in which they occur, without `known` ones."""
    if isinstance(tree, str):
        return []
    found: dict[str, None] = {}
    seen = set(known) | BUILTINS
    for node in ast.walk(tree):
        for _, value in _identifiers(node):
            for name in [value] if isinstance(value, str) else value:
                if name not in seen:
                    seen.add(name)
                    if len(name) > MAX_NAME_CHARS or not name.isascii() or looks_like_verdict(name):
                        found[name] = None
    return list(found)


def _rename(tree: ast.Module, names: dict[str, str]) -> None:
    for node in ast.walk(tree):
        for field, value in list(_identifiers(node)):
            setattr(
                node, field, names.get(value, value) if isinstance(value, str) else [names.get(v, v) for v in value]
            )


def _replace_strings(tree: ast.Module, question: str, tests: str) -> None:
    """Replaces strings that are suspicious by themselves, or together with others of their statement."""
    placeholders: dict[str | bytes, str] = {}
    for group in _groups(tree):
        texts = [_text(node) for node in group]
        is_split = bool(looks_like_verdict(" ".join(texts))) and not any(looks_like_verdict(text) for text in texts)
        for node, text in zip(group, texts, strict=True):
            if (is_split and text not in tests) or (_is_suspicious(text) and text not in question + tests):
                assert isinstance(node.value, str | bytes)
                placeholder = placeholders.setdefault(node.value, f"text{len(placeholders) + 1}")
                node.value = placeholder.encode() if isinstance(node.value, bytes) else placeholder


def _groups(tree: ast.Module) -> Iterator[Sequence[ast.Constant]]:
    """Yields the strings of each statement, without those of statements inside it."""
    for statement in ast.walk(tree):
        if isinstance(statement, ast.stmt):
            found: list[ast.Constant] = []
            stack = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
            while stack:
                node = stack.pop()
                if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and node.value:
                    found.append(node)
                children = (child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt))
                stack.extend(reversed(list(children)))
            yield found


def _text(node: ast.Constant) -> str:
    return node.value.decode("latin-1") if isinstance(node.value, bytes) else str(node.value)


def _is_suspicious(text: str) -> bool:
    words = _WORD.findall(text)
    is_prose = len(words) >= _MIN_PROSE_WORDS and sum(len(word) + 1 for word in words) >= _PROSE_SHARE * len(text)
    is_foreign = not text.isascii() and any(char.isalpha() for char in text)
    return is_prose or is_foreign or len(text) > MAX_STRING_CHARS or looks_like_verdict(text) is not None
