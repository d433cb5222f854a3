"""Finds programs that contain the answers to the examples, or do not use their input."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

from codezero.evaluate.rules.literals import Literals
from codezero.evaluate.rules.solution import BUILTINS, STDIN_NAMES, RuleScore, Solution, broken
from codezero.evaluate.rules.tables import branches, tables
from codezero.evaluate.said import fixed_phrases_of

_HARMLESS = BUILTINS - {"print"} | {"sys"}
"""Names that a statement may use if it reads input without using it."""
_STDOUT = frozenset({"stdout", "__stdout__"})
"""Names of standard output: a statement that reads input and has one may print the answer."""
_MAX_EXAMPLES = 50
_MIN_TELLING = 4
"""The fewest characters, without zeros at the ends, of an answer that no program contains by chance."""


def hardcoded_programs(solution: Solution) -> RuleScore | None:
    """Returns a broken rule if the program contains a table of the examples, or all their answers as literals, or does
    not use its input; else None.

    A table (`tables`) maps the whole input of an example, as text, lines, words or numbers, to the expected output. It
    counts if the input has more than one word, or if all its rows are examples; conditions on one word do not count,
    since honest programs have them as base cases.
    """
    examples = solution.requirements.examples[:_MAX_EXAMPLES]
    if not examples or not all(example.given.strip() for example in examples):
        return None  # there is no input to read
    literals = Literals(by_words=True)
    answers = [set(_spellings(example.expected, literals)) for example in examples]
    by_row = {
        (key, answer): len(example.given.split()) > 1
        for example, found in zip(examples, answers, strict=True)
        if example.given.strip() not in ("0", "1")
        for key in _spellings(example.given, literals)
        for answer in found
    }
    for line, rows, is_chain in tables(solution.nodes, literals):
        hits = [by_row[row] for row in rows if row in by_row]
        if any(hits) or (hits and not is_chain and len(hits) == len(rows)):
            return broken(f"line {line}: looks up the answers of the examples by their input")
    is_said = fixed_phrases_of(solution.task.question, examples)
    if all(_is_telling(example.expected, solution.task.question, is_said) for example in examples):
        held = {literals.of(node) for node in _results(solution.nodes)}
        if all(found & held for found in answers):
            return broken("holds just the answers of the examples")
    return None if _uses_input(solution.nodes) else broken("does not use what it reads")


def _spellings(text: str, literals: Literals) -> Iterator[int]:
    """Yields the numbers of a text as the literals that programs compare with: the text, its lines, words and
    numbers."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    words = text.split()
    yield literals.text(text)
    yield literals.sequence(literals.text(" ".join(row)) for row in rows)
    for number in (literals.text, literals.numeral):
        try:
            yield literals.sequence(map(number, words))
            yield literals.sequence(literals.sequence(map(number, row)) for row in rows)
            if len(words) == 1:
                yield number(words[0])
        except ValueError:
            return  # not all of them are numbers


def _is_telling(expected: str, question: str, is_said: Callable[[str], bool]) -> bool:
    """Returns whether no program contains this answer by chance: it is neither short nor a word or phrase of the
    statement."""
    words = expected.split()
    is_word = len(words) == 1 and re.fullmatch(r"[^\W\d]+", words[0]) and words[0] in question
    if is_word or len(" ".join(words).strip("-0. ")) < _MIN_TELLING:
        return False
    return not is_said(expected)


def _results(nodes: Sequence[ast.AST]) -> Iterator[ast.expr]:
    """Yields what a program may print: arguments of calls, values of assignments and returns, and items of tables."""
    for node in nodes:
        if isinstance(node, ast.Call):
            yield from node.args
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            yield from node.elts
        elif isinstance(node, ast.Dict):
            yield from node.values
        elif isinstance(node, ast.Assign | ast.Return) and node.value is not None:
            yield node.value
        yield from branches(node)


def _uses_input(nodes: Sequence[ast.AST]) -> bool:
    """Returns whether some input is used, and not only discarded or assigned to an unused name. True if nothing is
    read, which the rule `io` and the dry run find."""
    statements = [node for node in nodes if isinstance(node, ast.Assign | ast.Expr)]
    aliases = [s for s in statements if not any(isinstance(part, ast.Call) for part in ast.walk(s))]
    renamed = [s for s in aliases if any(_name(part) in STDIN_NAMES for part in ast.walk(s))]
    readers = STDIN_NAMES.union(*map(_bound, renamed))
    writers = _STDOUT.union(*(_bound(s) for s in aliases if any(_name(part) in _STDOUT for part in ast.walk(s))))
    loaded = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    idle = {id(part) for statement in aliases for part in ast.walk(statement)}
    for statement in statements:
        if any(_name(part) in writers for part in ast.walk(statement)):
            continue
        parts = [part for part in ast.walk(statement) if isinstance(part, ast.Name)]
        inner = {part.id for part in parts if isinstance(part.ctx, ast.Store)}
        used = {part.id for part in parts} - inner
        if used <= _HARMLESS | readers and not _bound(statement) & loaded:
            idle.update(map(id, ast.walk(statement)))
    reads = [id(node) in idle for node in nodes if _name(node) in readers]
    return not reads or not all(reads)


def _bound(statement: ast.Assign | ast.Expr) -> set[str]:
    """Returns the names that a statement assigns."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}


def _name(node: ast.AST) -> str | None:
    """Returns the name of the variable or attribute that a node reads; None if it reads none."""
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
        return node.id if isinstance(node, ast.Name) else node.attr
    return None
