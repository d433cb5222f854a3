"""Rules of the family alignment: the code answers the question, and does not copy it or return a constant."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codezero.evaluate.rules.solution import KEPT, RuleScore, Solution, broken, own_nodes, printed
from codezero.evaluate.rules.structure import parameters
from codezero.runtime.amounts import counted
from codezero.tasks.testcases import FunctionNode

_MIN_COPIED_CHARS = 20
"""The fewest characters of a line that counts as copied; shorter ones, such as `return result`, are equal by chance."""


def copied(solution: Solution) -> RuleScore:
    """Scores whether the code repeats neither the tests nor the question."""
    tests = [
        s for s in solution.tree.body if isinstance(s, ast.Assert) and printed(s) in solution.requirements.statements
    ]
    if tests:
        has_more = any(isinstance(s, FunctionNode | ast.ClassDef) for s in solution.tree.body)
        return broken(f"line {tests[0].lineno}: repeats {len(tests)} of the tests", 0.5 if has_more else 0.0)
    question = {line.strip() for line in solution.task.question.splitlines()}
    lines = [line.strip().lstrip("#").strip() for line in solution.code.splitlines()]
    long = [line for line in lines if len(line) >= _MIN_COPIED_CHARS]
    again = [line for line in long if line in question and not line.startswith(("def ", "class ", "import ", "from "))]
    if not again:
        return KEPT
    return broken(f"repeats {counted(len(again), 'line')} of the question", 1.0 - len(again) / len(long))


def statement(solution: Solution) -> RuleScore | None:
    """Scores whether each function that the tests call uses its parameters, and returns more than a constant."""
    worst = KEPT
    for name, function in solution.targets.items():
        if function.decorator_list:
            continue
        worst = min(worst, _engages(name, function), key=lambda s: s.score)
    return worst if solution.targets else None


def _engages(name: str, function: FunctionNode) -> RuleScore:
    nodes = list(own_nodes(function))
    returned = [n.value for n in nodes if isinstance(n, ast.Return) and n.value is not None]
    is_constant = all(_is_small(value) for value in returned) and len({ast.dump(value) for value in returned}) == 1
    if is_constant and not any(isinstance(n, ast.Yield | ast.YieldFrom) for n in nodes):
        return broken(f"line {returned[0].lineno}: {name} answers everything with {printed(returned[0])[:40]}")
    wanted = [p.arg for p in parameters(function) if not p.arg.startswith("_") and p.arg not in ("self", "cls")]
    used = set(_loaded(function))
    unused = [arg for arg in wanted if arg not in used]
    if not unused:
        return KEPT
    score = 0.0 if len(unused) == len(wanted) else 1.0 - 0.5 * len(unused) / len(wanted)
    return broken(f"line {function.lineno}: {name} does not use {', '.join(unused[:5])}", score)


def _is_small(value: ast.expr) -> bool:
    """Returns whether the value needs no parameter: a constant, or an empty or constant display."""
    if isinstance(value, ast.UnaryOp):
        value = value.operand
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return all(isinstance(element, ast.Constant) for element in value.elts)
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Dict) and not value.keys)


def _loaded(function: FunctionNode) -> Iterator[str]:
    for statement_ in function.body:
        for node in ast.walk(statement_):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                yield node.id
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                yield node.target.id
