from __future__ import annotations

from codezero.network.shares import in_turns


def first_letter(text: str) -> str:
    return text[0]


def length(items) -> float:
    return len(items[0])


def test_without_shares_the_rank_decides():
    assert in_turns(["ccc", "a", "bb"], [], length) == ["a", "bb", "ccc"]


def test_nobody_has_a_second_turn_before_everybody_has_had_a_first():
    order = in_turns(["a1", "a2", "a3", "b1", "c1", "c2"], [first_letter], lambda items: 0.0)
    assert [item[0] for item in order] == ["a", "b", "c", "a", "c", "a"]


def test_a_thousand_items_of_one_share_delay_nobody_else():
    order = in_turns([f"a{n}" for n in range(1000)] + ["b", "c"], [first_letter], lambda items: 0.0)
    assert {"b", "c"} < set(order[:3])


def test_within_a_share_turns_are_taken_in_the_same_way():
    items = ["x.p.1", "x.p.2", "x.q.1", "y.r.1"]
    order = in_turns(items, [first_letter, lambda item: item[:3]], lambda items: 0.0)
    assert [item[:3] for item in order] == ["x.p", "y.r", "x.q", "x.p"]


def test_every_item_comes_once():
    items = [f"{a}{b}" for a in "abc" for b in range(5)]
    assert sorted(in_turns(items, [first_letter], lambda items: 0.0)) == sorted(items)


def test_nothing_gives_nothing():
    assert in_turns([], [first_letter], length) == []
