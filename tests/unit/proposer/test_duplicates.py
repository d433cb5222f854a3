"""What has been seen before, exactly and nearly."""

import time

import pytest

from codezero.proposer.duplicates import Seen

QUESTION = "Write a function add(a, b) that returns the sum of the two integers a and b."
TESTS = "assert add(1, 2) == 3"


def seen(remembered=10, similarity=0.6, known=()):
    return Seen(remembered=remembered, similarity=similarity, known=known)


def test_a_new_problem_is_new_until_it_was_added():
    memory = seen()
    assert memory.why_not(QUESTION, TESTS) is None
    memory.add(QUESTION, TESTS)
    assert memory.why_not(QUESTION, TESTS) == "duplicate"


@pytest.mark.parametrize(
    ("question", "tests", "reason"),
    [
        ("WRITE a function `add(a,b)`,\nthat returns the sum of the two integers: a and b", "", "duplicate"),
        ("What do apples and pears come to, put together?", "assert  add(1, 2) == 3\n", "duplicate"),
        (QUESTION.replace("sum of", "total of"), "", "near_duplicate"),
        (QUESTION.replace("sum of the two", "product of some"), "", None),
    ],
    ids=["case, signs and spaces", "the same tests", "a word changed", "more words changed"],
)
def test_a_problem_is_compared_by_its_words_and_by_its_tests(question, tests, reason):
    memory = seen()
    memory.add(QUESTION, TESTS)
    assert memory.why_not(question, tests) == reason


def test_similarity_is_the_share_of_common_triples():
    memory = seen(similarity=0.5)
    memory.add("a b c d e", "")  # abc bcd cde
    assert memory.why_not("a b c d f", "") == "near_duplicate"  # abc bcd cdf: 2 of 4
    assert memory.why_not("a b c x y", "") is None  # abc bcx cxy: 1 of 5


def test_only_the_last_proposals_are_remembered_but_all_known_questions():
    memory = seen(remembered=2, known=["Return the smallest divisor of n that is above one."])
    for name in ("one", "two", "three"):
        memory.add(f"{name} {name}", "")
    assert memory.why_not("one one", "") is None
    assert memory.why_not("two two", "") == memory.why_not("three three", "") == "duplicate"
    assert memory.why_not("return the smallest divisor of N that is above ONE", "") == "duplicate"


def test_no_tests_at_all_are_not_the_same_tests():
    memory = seen(known=["known question of a data set"])
    memory.add("first thing to be done", "")
    assert memory.why_not("something else entirely different", "") is None


def test_restored_memory_answers_as_before_within_its_own_size():
    before, after = seen(), seen(remembered=1)
    before.add("first question of some", "assert a(1) == 1")
    before.add("another thing to be asked", "assert b(1) == 1")
    after.add("forgotten by loading it", "")
    after.load_state_dict(before.state_dict())
    assert after.why_not("another thing to be asked", "") == "duplicate"
    assert after.why_not("x y z", "assert b(1)  == 1") == "duplicate"
    assert after.why_not("first question of some", "") is None
    assert after.why_not("forgotten by loading it", "") is None


def test_a_thousand_long_questions_are_compared_in_little_time():
    memory = seen(remembered=1_000)
    for i in range(1_000):
        memory.add(" ".join(f"w{i * j % 9973}" for j in range(400)), f"assert f({i}) == {i}")
    start = time.process_time()
    assert memory.why_not(" ".join(f"v{j}" for j in range(400)), "assert f(1) == 0") is None
    assert time.process_time() - start < 0.5


def test_text_without_words_and_lone_surrogates_are_no_error():
    memory = seen()
    memory.add("???", "\ud800")
    assert memory.why_not("!!!", "") == "duplicate"
    assert memory.why_not("\ud800 word", "x") is None
