"""Hostile programs, made at random from everything that the dry run lets a program call.

What can be called is read from the interpreter's own tables, and which kinds of values each callable takes is found by
trying. Programs then call it with hostile values of those kinds, in the ways that have cost time, memory or stack.

    python -m tests.unit.evaluate.dryrun.generate 2000 --seed 1

makes so many, runs them and prints those that took too much.
"""

from __future__ import annotations

import argparse
import ast
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from codezero.evaluate.dryrun.budget import Budget, Stop, meter
from codezero.evaluate.dryrun.compiler import Unit
from codezero.evaluate.dryrun.errors import PROGRAM_ERRORS
from codezero.evaluate.dryrun.functions import BUILTINS
from codezero.evaluate.dryrun.library import MODULES
from codezero.evaluate.dryrun.measure import NamedTupleValue
from codezero.evaluate.dryrun.methods import METHODS, RECORD_METHODS
from codezero.evaluate.dryrun.modules import Module
from codezero.evaluate.dryrun.type_objects import Annotation
from tests.unit.evaluate.dryrun.confined import Program, Ran, run_all
from tests.unit.evaluate.dryrun.hostile_values import KINDS, PRELUDE

BUDGET = {"steps": 30_000, "total_seconds": 0.5}
"""Little, so that many programs can be tried: what costs too much costs many times as much as its steps."""
MAX_SECONDS, MAX_MIB = 1.0, 64
"""What a program may take. Its steps are worth some 0.05 s and 2 MiB, each of the two cases."""

_BINARY = ["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^", "==", "!=", "<", "<=", "in", "not in", "is"]
SYNTAX = [
    *[f"(lambda a, b: a {sign} b)" for sign in _BINARY],
    *[f"(lambda a: {sign}a)" for sign in ("-", "+", "~", "not ")],
    "(lambda a, b: a[b])", "(lambda a, b: a[b:])", "(lambda a, b: Keys()[a:b])", "(lambda a: f'{a}')",
    "(lambda a: f'{a!r:>9}')", "(lambda a: {a})", "(lambda a, b: {a: b})", "(lambda a: [*a])", "(lambda a: {*a})",
    "(lambda a: {**a})", "(lambda a: (a, a))", "(lambda a: Keys()[a])", "(lambda a: {k: k for k in a})",
    "(lambda a: sorted(a, key=lambda v: a))", "(lambda a: lambda: a)", "(lambda a: (v for v in a))",
    *["caught", "raised", "finally_", "matched", "unpacked", "called", "named", "joined", "added", "taken",
      "multiplied", "sliced", "deleted", "stored", "looped", "yielded", "deep", "spun", "Point", "Wrong", "managed",
      "swallowed", "placed", "around", "attributed", "written", "Rows", "Table", "Level", "Data", "Named"],
]  # fmt: skip
"""What is not a call of a table's function, as functions."""

FORMS = {
    "once": "    kept.append({call})",
    "refused": """    for _ in range(1_000_000):
        try: {call}
        except Exception as error: kept.append(error)""",
    "loop": "    for _ in range(1_000_000): kept.append({call})",
    "in one statement": "    for _ in range(1_000_000): [{calls}]",
    "chained": "    for _ in range(1_000_000): x = {chained}",
    "chained and kept": "    for _ in range(1_000_000): kept[0] = {kept}",
    "used up": "    for _ in range(99): kept.append(list({call}))",
    "compared": "    y = {call}\n    for _ in range(1_000_000): y == {call}, y in [{call}], [y] < [{call}]",
    "as text": "    y = {call}\n    for _ in range(1_000_000): str(y), repr([y, y]), '%s %r' % (y, y), f'{{y!r}}'",
    "as a key": "    y = {call}\n    for _ in range(1_000_000): {{y: 1}}, {{(y, 1)}}, hash(y)",
    "in a cycle": "    for _ in range(1_000_000):\n        x = [{call}, x]\n        x.append(x)",
}
"""Ways to use a call: what costs, keeps or nests in one may not in another."""


@dataclass(frozen=True)
class Target:
    """Something to call: an expression of it, and the kind that its first argument must have, if it must."""

    expression: str
    first: str | None = None


@cache
def targets() -> dict[str, Target]:
    """All that a program can call, by name."""
    found = {name: Target(name) for name, value in BUILTINS.items() if callable(value)}
    for module in MODULES.values():
        found.update(_members(module.name, module.members))
    for name, value in BUILTINS.items():
        found.update(_members(name, getattr(value, "attrs", {})))
    kinds = {type(value()): kind for kind, value in ordinary_values().items()}
    for host, methods in {**METHODS, NamedTupleValue: RECORD_METHODS}.items():
        for name in methods:
            found[f"{host.__name__}().{name}"] = Target(f"(lambda value, *args: value.{name}(*args))", kinds[host])
    for expression in SYNTAX:
        found[expression] = Target(expression)
    return found


def _members(prefix: str, members: dict[str, Any]) -> dict[str, Target]:
    found = {}
    for name, member in members.items():
        path = f"{prefix}.{name}"
        if isinstance(member, Module):
            found.update(_members(path, member.members))
        elif callable(member) and not isinstance(member, Annotation):
            found[path] = Target(path)
            found.update(_members(path, getattr(member, "attrs", {})))
    return found


class Interpreter:
    """Evaluates expressions with the names of PRELUDE."""

    def __init__(self) -> None:
        self._unit = Unit({}, {})
        self._begin()
        self._unit.block(ast.parse(PRELUDE).body)([None])

    def _begin(self) -> None:
        meter.new_process(Budget().memory)
        meter.start(Budget(), 10.0)
        MODULES["random"].members["seed"](1)

    def value(self, expression: str) -> Callable[[], Any]:
        """A function that evaluates it anew each time."""
        evaluate = self._unit.expression(ast.parse(expression, mode="eval").body)

        def fresh() -> Any:
            self._begin()
            return evaluate([None])

        return fresh


@cache
def interpreter() -> Interpreter:
    return Interpreter()


@cache
def ordinary_values() -> dict[str, Callable[[], Any]]:
    """Of each kind a function that makes an ordinary value."""
    return {kind: interpreter().value(ordinary) for kind, (ordinary, _) in KINDS.items()}


def signature(target: Target, rng: random.Random) -> tuple[str, ...] | None:
    """Kinds of arguments that it takes, found by trying: those that raise no TypeError. None if none were found."""
    function = interpreter().value(target.expression)()
    return next((kinds for kinds in _argument_kinds(target.first, rng) if _takes(function, kinds)), None)


def _argument_kinds(first: str | None, rng: random.Random) -> Iterator[tuple[str, ...]]:
    """A few of one number of arguments, then all of up to two arguments and many of three."""
    places = [[first] if first is not None else list(KINDS), list(KINDS), list(KINDS)]
    count = rng.choice([1, 2, 2, 3])
    for _ in range(40):
        yield tuple(map(rng.choice, places[:count]))
    for count in range(3):
        every = list(product(*places[:count]))
        yield from rng.sample(every, len(every))
    for _ in range(60_000):
        yield tuple(map(rng.choice, places))


def _takes(function: Callable[..., Any], kinds: tuple[str, ...]) -> bool:
    values = ordinary_values()
    try:
        function(*[values[kind]() for kind in kinds])
    except (TypeError, Stop):
        return False
    except PROGRAM_ERRORS:
        pass
    return True


def program(name: str, form: str, rng: random.Random) -> Program:
    """A program that calls the target of that name with at least one hostile value, where it takes any value."""
    target = targets()[name]
    kinds = signature(target, rng) or ()
    hostile = rng.randrange(len(kinds)) if kinds else -1
    args = [
        rng.choice(KINDS[kind][1]) if number == hostile or rng.random() < 0.3 else KINDS[kind][0]
        for number, kind in enumerate(kinds)
    ]
    names = [f"v{number}" for number in range(len(args))]
    call = f"target({', '.join(names)})"
    body = FORMS[form].format(
        call=call,
        calls=", ".join([call] * 300),
        chained=f"target({', '.join(['x', *names[1:]])})",
        kept=f"target({', '.join(['kept[0]', *names[1:]])})",
    )
    lines = [
        f"# {name}, {form}",
        PRELUDE,
        "def f():",
        f"    target = {target.expression}",
        *[f"    {name} = {arg}" for name, arg in zip(names, args, strict=True)],
        f"    x = {names[0] if names else None}",
        "    if kept[0] is None: kept[0] = x",
        body,
        "    return 1",
    ]
    return Program("\n".join(lines), "assert f() == 2\nassert f() == 2")


def programs(count: int, seed: int) -> dict[str, Program]:
    """So many programs by what they do; each callable has its turn before one has a second, in another form."""
    rng = random.Random(seed)
    names = sorted(targets())
    rng.shuffle(names)
    forms = {name: rng.sample(list(FORMS), len(FORMS)) for name in names}
    found: dict[str, Program] = {}
    for number in range(count):
        turn, place = divmod(number, len(names))
        name = names[place]
        form = forms[name][turn % len(FORMS)]
        found[f"{number}: {name}, {form}"] = program(name, form, rng)
    return found


def complaints(programs: dict[str, Program], ran: list[Ran]) -> dict[str, str]:
    """What programs took too much, by name."""
    found = {name: one.complaint(MAX_SECONDS, MAX_MIB) for name, one in zip(programs, ran, strict=True)}
    return {name: text for name, text in found.items() if text}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    made = programs(options.count, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        ran = run_all(list(made.values()), Path(folder), **BUDGET)
    found = complaints(made, ran)
    for name, text in found.items():
        print(f"{name}: {text}\n{made[name].code.partition(PRELUDE)[2]}\n")
    reasons = Counter(reason.split(":")[0][:40] for one in ran for reason in one.reasons)
    print(f"{len(ran)} programs of {len(targets())} callables, {len(found)} took too much")
    print(f"most time {max(one.seconds for one in ran):.1f} s, most memory {max(one.mib for one in ran)} MiB")
    print(*[f"{count:6} {reason}" for reason, count in reasons.most_common(12)], sep="\n")


if __name__ == "__main__":
    main()
