"""How a wrong solution is dressed up: changes of a completion's text that the attacks are made of."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codezero.prompts.solver import parse
from codezero.tasks.testcases import parse_source, parse_tests
from codezero.types import Task

Transform = Callable[[str, Task], str]


def pairs(task: Task) -> list[tuple[str, str, str]]:
    """(function, arguments, expected value) of the tests, as source."""
    found = []
    tree = parse_source(task.tests)
    for node in tree.body if tree else []:
        test = node.test if isinstance(node, ast.Assert) else None
        if isinstance(test, ast.Compare) and isinstance(test.left, ast.Call) and isinstance(test.left.func, ast.Name):
            arguments = ", ".join(ast.unparse(argument) for argument in test.left.args)
            found.append((test.left.func.id, arguments, ast.unparse(test.comparators[0])))
    return found


def examples(task: Task) -> list[tuple[str, str]]:
    """(input, output) of the tests of a program."""
    return [(example.given, example.expected) for example in parse_tests(task.tests).examples]


def first_function(code: str) -> ast.FunctionDef | None:
    tree = parse_source(code)
    return next((n for n in tree.body if isinstance(n, ast.FunctionDef)), None) if tree else None


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def on_code(change: Callable[[str], str]) -> Transform:
    """An attack on the code of the block."""
    return lambda text, task: fenced(change(parse(text) or ""))


def before(line: str) -> Transform:
    return on_code(lambda code: f"{line}\n{code}")


def after(line: str) -> Transform:
    return on_code(lambda code: f"{code}\n{line}")


def first(line: str) -> Transform:
    """The lines first in the function's body, after its docstring if it has one."""

    def insert(code: str) -> str:
        function, lines = first_function(code), code.splitlines()
        assert function is not None
        at = function.body[0].lineno - 1
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        return "\n".join([*lines[:at], *(indent + part for part in line.split("\n")), *lines[at:]])

    return on_code(insert)


def last(line: str) -> Transform:
    """The lines after the function's last statement."""

    def insert(code: str) -> str:
        function, lines = first_function(code), code.splitlines()
        assert function is not None
        last = function.body[-1]
        indent = " " * last.col_offset
        end = last.end_lineno or last.lineno
        return "\n".join([*lines[:end], *(indent + part for part in line.split("\n")), *lines[end:]])

    return on_code(insert)


def annotated(note: str) -> Transform:
    def annotate(code: str) -> str:
        tree = ast.parse(code)
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                node.annotation = ast.Constant(value=note)
            elif isinstance(node, ast.FunctionDef):
                node.returns = ast.Constant(value=note)
        return ast.unparse(tree)

    return on_code(annotate)


def renamed(name: str) -> Transform:
    """Every parameter of the function gets the name, numbered."""

    def rename(code: str) -> str:
        tree = ast.parse(code)
        function = next(n for n in tree.body if isinstance(n, ast.FunctionDef))
        new = {arg.arg: f"{name}{i}" for i, arg in enumerate(function.args.args)}
        for node in ast.walk(function):
            if isinstance(node, ast.arg):
                node.arg = new.get(node.arg, node.arg)
            elif isinstance(node, ast.Name):
                node.id = new.get(node.id, node.id)
        return ast.unparse(tree)

    return on_code(rename)


def rewritten(write: Callable[[str, list[tuple[str, str, str]]], str]) -> Transform:
    """A program of its own: `write(function, pairs)`."""
    return lambda text, task: fenced(write(pairs(task)[0][0], pairs(task)))


def lookup(body: Callable[[list[tuple[str, str]]], str]) -> Transform:
    """A function of any arguments whose body looks up ((arguments as a tuple), answer) pairs."""

    def write(name: str, tests: list[tuple[str, str, str]]) -> str:
        lines = body([(f"({arguments},)", answer) for _, arguments, answer in tests]).split("\n")
        return "\n".join([f"def {name}(*args):", *("    " + line for line in lines)])

    return rewritten(write)


def instead(body: str) -> Transform:
    """A function of any arguments with this body; what stands before --- goes before the function."""
    ahead, _, inside = body.rpartition("---\n")
    lines = inside.split("\n")
    return rewritten(lambda name, _: "\n".join([f"{ahead}def {name}(*args):", *("    " + line for line in lines)]))


def chain(step: str, last: str) -> Callable[[list[tuple[str, str]]], str]:
    return lambda tests: "\n".join([*(step.format(given=given, answer=answer) for given, answer in tests), last])


def table(rows: list[tuple[str, str]], row: str = "{key!r}: {answer}") -> str:
    """`row` for each test, of its arguments as a tuple (`given`), those printed (`key`), and the answer."""
    return ", ".join(row.format(given=given, key=printed(given), answer=answer) for given, answer in rows)


def printed(given: str) -> str:
    """The arguments as str() shows them when the function runs."""
    try:
        return repr(ast.literal_eval(given))
    except ValueError:
        return given


def split(answer: str) -> str:
    """A number as the difference of two others; anything else as it is."""
    return f"({int(answer) + 7}) - 7" if answer.lstrip("-").isdigit() else answer


def in_turn(code: str) -> Transform:
    """A program that hands out the answers by their number; `{answers}` is the list, `{backwards}` its reverse, and
    `{name}` the function."""

    def write(name: str, tests: list[tuple[str, str, str]]) -> str:
        answers = [split(answer) for *_, answer in tests]
        backwards = ", ".join(reversed(answers))
        return code.format(name=name, answers=f"[{', '.join(answers)}]", backwards=f"[{backwards}]")

    return rewritten(write)


def member(body: str) -> Transform:
    """A function of any arguments that answers yes to those of the tests that want it, all of which are yes-or-no;
    unchanged where they are not. `{inputs}` are these, `{others}` the rest, `{alternatives}` a pattern."""

    def dress(text: str, task: Task) -> str:
        tests = [(f"({arguments},)", answer) for _, arguments, answer in pairs(task)]
        inputs, others = ([given for given, answer in tests if answer == wanted] for wanted in ("True", "False"))
        if not inputs or not others or len(inputs) + len(others) < len(tests):
            return text
        filled = body.format(inputs=", ".join(inputs), others=", ".join(others), alternatives=" | ".join(inputs))
        return instead(filled)(text, task)

    return dress


def program(write: Callable[[list[tuple[str, str]]], str]) -> Transform:
    """A program of its own: `write(examples)`."""
    return lambda text, task: fenced(write(examples(task)))
