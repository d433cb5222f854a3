import collections
import datetime
import decimal
import fractions
import itertools
import json

import pytest

from codezero.sandbox.inside.values import MAX_ITEMS, NotData, decode, encode


def no_reference(value):
    raise NotData(type(value).__name__)


def there_and_back(value):
    return decode(json.loads(json.dumps(encode(value, no_reference))), no_reference)


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, False, 0, -7, 10**5000, 0.1, -0.0, float("inf"), 1 + 2j, "", "ü\n\x00", "\ud800", b"\x00\xff"),
        *([], [1, [2, ()]], (1,), {1, 2}, frozenset({3}), {"a": [1], 2: (3,), (4, 5): None}, bytearray(b"x")),
        *(range(3, 9, 2), collections.deque([1]), collections.Counter("aab"), collections.OrderedDict(b=1, a=2)),
        *(slice(None, -1, 2), int, ValueError),
        *(decimal.Decimal("1.10"), fractions.Fraction(1, 3), {1: 2}.keys(), {1: 2}.items()),
        *(datetime.date(2024, 2, 29), datetime.time(1, 2, 3, 4), datetime.timedelta(-1, 2, 3)),
        *(datetime.datetime(2024, 1, 1), datetime.datetime(1, 1, 1, 1, 1, 1, 1, datetime.timezone.utc)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_plain_data_arrives_as_it_was(value):
    found = there_and_back(value)
    assert found == value
    assert type(found) is type(value)


def test_an_ordered_dictionary_and_its_views_keep_its_order():
    moved = collections.OrderedDict([(1, 2), (3, 4)])
    moved.move_to_end(1)
    assert list(there_and_back(moved).items()) == [(3, 4), (1, 2)]
    assert list(there_and_back(moved.keys())) == [3, 1]
    assert list(there_and_back(moved.values())) == [4, 2]
    assert list(there_and_back(moved.items())) == [(3, 4), (1, 2)]


def test_a_named_tuple_keeps_its_fields_and_loses_what_its_class_overrides():
    class Liar(collections.namedtuple("Point", "x y")):
        x = 7

        def __eq__(self, other):
            return True

    found = there_and_back([Liar(1, 2), Liar(3, 4)])
    assert [(type(point).__name__, point.x, point.y) for point in found] == [("Liar", 1, 2), ("Liar", 3, 4)]
    assert found[0] == (1, 2)
    assert found[0] != (3, 4)
    assert type(found[0]) is type(found[1])
    renamed = collections.namedtuple("Renamed", "a def", rename=True)(1, 2)
    assert there_and_back(renamed)._asdict() == {"a": 1, "_1": 2}


def test_a_defaultdict_keeps_its_factory():
    found = there_and_back(collections.defaultdict(list, {1: [2]}))
    assert (found, found.default_factory, found[3]) == ({1: [2], 3: []}, list, [])
    assert there_and_back(collections.defaultdict(None, {1: 2})).default_factory is None


def test_not_a_number_and_the_sign_of_zero_survive():
    assert str(there_and_back([float("nan"), -0.0])) == "[nan, -0.0]"


@pytest.mark.parametrize(
    "iterator", [map(str, [1, 2]), iter([1]), (i for i in "ab"), enumerate([1]), itertools.chain([1], [2])]
)
def test_iterators_arrive_with_their_items(iterator):
    first, second = itertools.tee(iterator)
    assert list(there_and_back(first)) == list(second)


def test_an_endless_iterator_is_no_data():
    with pytest.raises(NotData, match=f"more than {MAX_ITEMS}"):
        there_and_back(itertools.count())


class Liar:
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


def liars():
    kinds = (int, float, str, list, tuple, dict, set)
    return [type(f"Lying{kind.__name__}", (Liar, kind), {"__hash__": kind.__hash__})() for kind in kinds]


@pytest.mark.parametrize("liar", liars(), ids=lambda liar: type(liar).__name__)
def test_a_subclass_that_equals_everything_arrives_as_the_plain_type(liar):
    assert liar == 42
    found = there_and_back(liar)
    assert type(found) is type(liar).__mro__[2]
    assert found != 42


def test_anything_else_goes_by_number():
    liar = Liar()
    assert encode([liar], lambda value: 5) == ["l", [["@", 5]]]
    assert decode(["l", [["@", 5]]], lambda number: number + 1) == [6]


@pytest.mark.parametrize(
    "coded",
    [
        *(5, 1.5, {}, [], ["?"], ["i"], ["i", 5], ["i", "zz"], ["f", "x"], ["l", 5], ["d", [[1]]], ["s", [["l", []]]]),
        *(["d", [[["l", []], 1]]], ["r"], ["r", "0x0", "0x1", "0x0"], ["m", "x"], ["q", "1/0"], [["l"]]),
        *(["b", "0"], ["z", "0x0"], ["wi", [1]], ["@"], ["g", "exec"], ["g", "Stack"]),
        *(["N", "P", ["x"], []], ["N", "P", [["l"]], [1]], ["N", "P(__import__)", ["x"], [1]], ["N", 1, ["x"], [1]]),
        *(["v", 5, ["d", []]], ["v", ["g", "exec"], ["d", []]], ["v", None, 5]),
    ],
    ids=str,
)
def test_what_encode_does_not_make_is_refused(coded):
    with pytest.raises(NotData, match="garbled"):
        decode(coded, lambda number: number)
