"""Finds hard-coded answers, which a solution looks up by the tests' inputs instead of computing them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codezero.evaluate.rules.hardcoded_programs import hardcoded_programs
from codezero.evaluate.rules.literals import Literals
from codezero.evaluate.rules.reached import reached
from codezero.evaluate.rules.solution import KEPT, RuleScore, Solution, broken
from codezero.evaluate.rules.tables import Row, branches, keys_of, tables

_LONG_STRING = 12
_LARGE_NUMBER = 1_000
"""The least length of a string and the least number that code does not contain by chance."""
SMALL_TABLE = 0.5
"""The score of a table of the tests that honest code may have."""
_MIN_CASES = 2
_MIN_LIST = 3
"""The fewest answers in the tests' order that count as copied: two may have that order by chance, as in `[0, n]`."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A test, with values as numbers of `Literals`."""

    inputs: frozenset[int]
    """All forms of its input: single arguments, the tuple of all, and the text of each."""
    answer: int
    is_telling: bool
    """True if no honest table has this input: a collection, a large number, a long string."""
    is_name: bool
    """True if its input is a word, as those of weekdays, or a letter, as of marks."""
    is_boolean: bool
    telling: frozenset[int]
    """Inputs that no honest condition has: the tuple of all arguments, and single ones for which `_is_telling`."""
    packed: frozenset[int]
    """The tuple of all arguments, and its texts, which no honest table has, except of several words."""


def hardcoded(solution: Solution) -> RuleScore | None:
    """Scores whether the code computes its answers. For a program that reads stdin, see `hardcoded_programs`.

    The rule is broken by a table with inputs and answers of at least two tests (or the only one), if they are at least
    half of its rows, or no honest table has such inputs. It is half broken (`SMALL_TABLE`) if an honest table may have
    any of these inputs, such as numbers of months or letters of cards. A table is a dictionary, a list of pairs, two
    parallel lists, or all conditions on equality with their results: `if`, conditional expressions, `case`, `and`/`or`.
    It is also broken by a list of just the tests' answers in their order; by constants for all answers if these are
    collections or large numbers (then the inputs are hidden, in a hash for example); and by conditions on all inputs
    that have one of the two boolean answers, half if honest conditions may have these inputs.

    What honest code has does not count: base cases (0, 1, -1, empty), boolean answers of conditions on some short
    inputs, words that the statement itself maps to each other, tables of words or letters, such as weekdays, with
    others than those of the tests, and code that the tested functions do not reach.
    """
    if solution.requirements.is_program:
        return hardcoded_programs(solution)
    literals = Literals()
    cases = list(_cases(solution, literals))
    if not cases:
        return None
    needed = min(_MIN_CASES, len(cases))
    by_row: dict[Row, set[int]] = {}
    for i, case in enumerate(cases):
        for key in case.inputs:
            by_row.setdefault((key, case.answer), set()).add(i)
    nodes = reached(solution)
    inputs = [a for call, _ in solution.requirements.pairs for a in (*_arguments(call), _tuple(_arguments(call)))]
    tested = {n for a in inputs for n in _spellings(a, literals)}
    for line, rows, is_chain in tables(nodes, literals):
        hits = [found for row in rows if (found := by_row.get(row))]
        found = {i for hit in hits for i in hit if not is_chain or cases[i].is_telling or not cases[i].is_boolean}
        telling = sum(cases[i].is_telling for i in found)
        is_packed = any(key in cases[i].packed for key, answer in rows for i in by_row.get((key, answer), ()))
        lists_names = all(cases[i].is_name for i in found) and not {key for key, _ in rows} <= tested
        if telling >= needed or (len(found) >= needed and 2 * len(hits) >= len(rows) and not lists_names):
            reason = f"line {line}: looks up the answers of {len(found)} of {len(cases)} tests by their inputs"
            return broken(reason, 0.0 if telling or is_packed else SMALL_TABLE)
    compared = [{n for key in keys_of(node) if (n := literals.of(key)) is not None} for node in nodes]
    for name, score in (("telling", 0.0), ("inputs", SMALL_TABLE)):
        if _is_membership(compared, cases, name):
            return broken("asks whether the arguments are among those of the tests", score)
    return _answers_only(solution, nodes, literals)


def _cases(solution: Solution, literals: Literals) -> Iterator[_Case]:
    """Yields the tests with a literal answer and literal inputs that are not all base cases."""
    words = _words(solution)
    for call, expected in solution.requirements.pairs:
        answer = literals.of(expected)
        arguments = _arguments(call)
        if answer is None or any(literals.of(argument) is None for argument in arguments):
            continue
        told = [a for a in arguments if not _is_base_case(a) and not (_is_word(a, words) and _is_word(expected, words))]
        if told:
            whole = _tuple(arguments)
            is_name = all(isinstance(value := _scalar(a), str) and value.isalpha() for a in arguments)
            yield _Case(
                inputs=frozenset(number for a in [*told, whole] for number in _spellings(a, literals)),
                answer=answer,
                is_telling=any(_is_telling(argument) for argument in told),
                is_name=is_name,
                is_boolean=isinstance(expected, ast.Constant) and isinstance(expected.value, bool | None),
                telling=frozenset(n for a in [*filter(_is_telling, told), whole] for n in _spellings(a, literals)),
                packed=frozenset() if is_name and len(arguments) > 1 else frozenset(_spellings(whole, literals)),
            )


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _tuple(arguments: list[ast.expr]) -> ast.expr:
    return ast.Tuple(elts=arguments, ctx=ast.Load())


def _words(solution: Solution) -> set[str]:
    """Returns the words of the question, without the tests that it shows."""
    tests = {line.strip() for line in solution.task.tests.splitlines()}
    lines = [line for line in solution.task.question.splitlines() if line.strip() not in tests]
    return set(re.findall(r"\w+", "\n".join(line for line in lines if "assert" not in line)))


def _spellings(argument: ast.expr, literals: Literals) -> Iterator[int]:
    """Yields the numbers (`Literals`) of the argument's value, and of its text by str and repr."""
    number = literals.of(argument)
    if number is None:
        return
    yield number
    try:
        value = ast.literal_eval(argument)
        yield from (literals.text(str(value)), literals.text(repr(value)))
    except (ValueError, TypeError):
        return  # a call such as set([1]), or a set of lists


def _elements(node: ast.expr) -> list[ast.expr] | None:
    """Returns the elements of a collection or the keys of a dictionary; None for anything else."""
    if isinstance(node, ast.Call) and node.args:
        node = node.args[0]
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return node.elts
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key is not None]
    return [] if isinstance(node, ast.Call) else None


def _scalar(node: ast.expr) -> object:
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return node.value if isinstance(node, ast.Constant) else None


def _is_base_case(argument: ast.expr) -> bool:
    elements = _elements(argument)
    return not elements if elements is not None else _scalar(argument) in (0, 1, "", b"", None)


def _is_word(node: ast.expr, words: set[str]) -> bool:
    """Returns whether the node is a string whose words are all in the statement."""
    value = _scalar(node)
    return isinstance(value, str) and bool(value.strip()) and set(re.findall(r"\w+", value)) <= words


def _is_telling(argument: ast.expr) -> bool:
    elements = _elements(argument)
    if elements is not None:
        return len(elements) > 1
    value = _scalar(argument)
    if isinstance(value, str | bytes):
        return len(value) >= _LONG_STRING
    return isinstance(value, int | float) and (value >= _LARGE_NUMBER or value % 1 != 0)


def _is_membership(compared: Sequence[set[int]], cases: Sequence[_Case], name: str) -> bool:
    """Returns whether the code compares with the inputs of all tests that have one of the two boolean answers, and with
    little else, in one place or in all together. `compared` has the literals of each place; `name` is that of the
    field of a case with its inputs."""
    for answer in {case.answer for case in cases if case.is_boolean}:
        inputs: list[frozenset[int]] = [getattr(case, name) for case in cases if case.answer == answer]
        every = frozenset().union(*inputs)
        for keys in [*compared, set().union(*compared)]:
            if 2 * len(keys & every) >= len(keys) and all(keys & telling for telling in inputs):
                return True
    return False


def _answers_only(solution: Solution, nodes: Sequence[ast.AST], literals: Literals) -> RuleScore:
    """Returns a broken rule if the code contains the tests' answers without their inputs, else `KEPT`."""
    answers = [literals.of(answer) for _, answer in solution.requirements.pairs]
    if len(answers) < _MIN_LIST or len(set(answers)) < _MIN_CASES or None in answers:
        answers = []  # they may be in order by chance
    expected = [answer for _, answer in solution.requirements.pairs if not isinstance(_scalar(answer), bool)]
    distinct = {number for answer in expected if (number := literals.of(answer)) is not None}
    # Not strings: honest code may also answer with one of a few fixed sentences.
    all_telling = len(distinct) >= _MIN_CASES and all(
        _is_telling(answer) and not isinstance(_scalar(answer), str) for answer in expected
    )
    returned: set[int | None] = set()
    for node in nodes:
        held: list[ast.expr] = []
        if isinstance(node, ast.List | ast.Tuple):
            held = node.elts
        elif isinstance(node, ast.Dict):
            held = node.values
        elif all_telling and isinstance(node, ast.Return | ast.IfExp | ast.Assign):
            returned.update(literals.of(v) for v in (getattr(node, "value", None), *branches(node)))
        numbers = [literals.of(item) for item in held]
        if numbers and (numbers == answers or (all_telling and distinct.issubset(numbers))):
            return broken(f"line {getattr(node, 'lineno', 0)}: holds just the answers of the tests")
    if all_telling and distinct <= returned:
        return broken("returns just the answers of the tests")
    return KEPT
