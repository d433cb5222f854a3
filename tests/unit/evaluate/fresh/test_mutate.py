"""Mutants differ from the visible inputs and share what all of those have in common."""

import random

import pytest

from codezero.evaluate.fresh.mutate import mutants


def drawn(*inputs, count=20, seed=0):
    return mutants(list(inputs), count, random.Random(seed), seconds=5.0)


@pytest.mark.parametrize(
    ("inputs", "keeps"),
    [
        ([([1, 4, 9],), ([2, 3],), ([5, 7, 8, 11],)], lambda xs: xs == sorted(xs)),
        ([([9, 4, 1],), ([3, 2],), ([11, 8, 7, 5],)], lambda xs: xs == sorted(xs, reverse=True)),
        ([([3, 1, 2],), ([9, 4],)], lambda xs: len(set(xs)) == len(xs)),
        ([([3, 1, 2],), ([9, 4],)], lambda xs: xs and all(type(x) is int and x > 0 for x in xs)),
        ([([-3, 1],), ([9, -4, 2],)], lambda xs: any(x < 0 for x in xs)),
        ([([[1, 2], [3, 4]],), ([[5, 6], [7, 8]],)], lambda rows: {len(row) for row in rows} == {2}),
        ([("0110",), ("101",)], lambda text: set(text) <= set("01")),
        ([("2020-10-05",), ("1999-01-31",)], lambda text: [len(part) for part in text.split("-")] == [4, 2, 2]),
        (
            [("hello world",), ("a few words",)],
            lambda text: text.islower() and "  " not in text and text.strip() == text,
        ),
        ([(["ab", "c"],), (["de"],)], lambda words: all(word.isalpha() and word.islower() for word in words)),
        ([(("a", 1),), (("b", 2),), (("c", 5),)], lambda pair: list(map(type, pair)) == [str, int]),
        ([({"x": 1, "y": 2},), ({"z": 3},)], lambda d: all(type(k) is str and type(v) is int for k, v in d.items())),
        ([({1, 2, 3},), ({4, 5},)], lambda found: type(found) is set),
        ([(4,), (16,), (400,)], lambda n: int(n**0.5) ** 2 == n),
        ([(1.5,), (2.25,)], lambda x: type(x) is float and x == round(x, 2)),
    ],
)
def test_an_argument_stays_what_it_is(inputs, keeps):
    found = drawn(*inputs)
    assert found
    assert all(keeps(value) for (value,) in found), found
    assert not [one for one in found if one in inputs]
    assert len(set(map(repr, found))) == len(found)


@pytest.mark.parametrize(
    ("inputs", "keeps"),
    [
        ([([1, 2, 3], 3), ([4, 4], 2)], lambda xs, n: n == len(xs)),
        ([([1, 2, 3], 2), ([4, 4, 5, 6], 3)], lambda xs, k: 0 < k <= len(xs)),
        ([([1, 2], [3, 4]), ([1, 2, 5], [7, 8, 9])], lambda a, b: len(a) == len(b)),
        ([("hello", "l"), ("word", "w")], lambda text, char: char in text),
        ([(1, 30), (50, 100), (100, 200)], lambda low, high: low < high),
        ([([1, 2, 3], "sum"), ([4, 5], "sum")], lambda _, mode: mode == "sum"),
    ],
)
def test_arguments_stay_in_the_relation_that_they_had(inputs, keeps):
    found = drawn(*inputs)
    assert found
    assert all(keeps(*one) for one in found), found


def test_one_seed_draws_the_same_and_another_something_else():
    inputs = [([3, 1, 2], "abc"), ([9, 4], "bd")]
    assert drawn(*inputs) == drawn(*inputs)
    assert drawn(*inputs) != drawn(*inputs, seed=1)


def test_where_nothing_can_change_nothing_is_drawn():
    assert drawn((None,), (None,)) == []
    assert drawn(([],), ([],)) == []


@pytest.mark.parametrize(
    "value",
    [
        1e999,
        float("-1e999"),
        10**900,
        -(10**900),
        1 + 2j,
        b"bytes",
        "²³",
        "\ud800",
        "-" * 900,
        [[[[[[]]]]]],
        {(): {}},
        {()},
    ],
)
def test_hostile_literals_raise_nothing(value):
    drawn((value,), count=5)
    drawn((value, [value]), ([value], value), count=5)


@pytest.mark.parametrize("odd", [1.5, "text", True], ids=repr)
def test_a_value_whose_type_comes_late_raises_nothing(odd):
    drawn(*[(list(range(700)),)] * 3, ([odd],), count=20)
