"""The order of sets is CPython's: a program that prints or lists one is judged by it."""

import random

import pytest

from codezero.evaluate.dryrun import printed

METHODS = ("union", "difference", "intersection", "symmetric_difference")
PIECE = 20
UPDATES = ("update", "difference_update", "intersection_update", "symmetric_difference_update")


def numbers(rng: random.Random, least: int, most: int) -> list[int]:
    return [rng.randint(-9, 90) for _ in range(rng.randint(least, most))]


def agrees(expressions: list[str]) -> None:
    """Compares the lists that expressions come to; all are ours and harmless."""
    wrong = []
    for start in range(0, len(expressions), PIECE):
        piece = expressions[start : start + PIECE]
        found = eval(printed("print([" + ",\n".join(piece) + "])"))
        wrong += [e for e, got in zip(piece, found, strict=True) if got != eval(e)]
    assert wrong == []


@pytest.mark.parametrize("form", ["set({})", "frozenset({})"])
@pytest.mark.parametrize("argument", ["{}", "set({})", "dict.fromkeys({})", "tuple({})", "iter({})", "range(len({}))"])
def test_set_methods_order_their_results_like_cpython(form, argument):
    rng = random.Random(1)
    expressions = []
    for _ in range(100):
        table, other = form.format(numbers(rng, 0, 9)), argument.format(numbers(rng, 0, 40))
        expressions.append(f"list({table}.{rng.choice(METHODS)}({other}))")
        expressions.append(f"list({form.format(other)})")
    agrees(expressions)


@pytest.mark.parametrize("update", UPDATES)
def test_updates_order_a_set_like_cpython(update):
    rng = random.Random(2)
    agrees(
        [
            f"[list(s) for s in [set({numbers(rng, 0, 9)})] if s.{update}({numbers(rng, 0, 9)}) is None]"
            for _ in range(200)
        ]
    )


def test_set_displays_are_ordered_like_those_that_cpython_compiles():
    rng = random.Random(3)
    displays = ["{" + ", ".join(map(str, numbers(rng, 1, 12))) + "}" for _ in range(200)]
    displays += ["{(0, 1), (1, 0), (0, -1), (-1, 0)}", "{2 + 30, 7, 64, -1}", "{*[16, 1, 2], 3, 4}"]
    agrees([f"list({display})" for display in displays])
    agrees([f"[x for x in {display}]" for display in displays])
    agrees([f"list({{x, 16, {rng.randint(0, 60)}}} for x in [8, 1, 24])" for _ in range(20)])
