"""Groups whose programs are the same but for what takes no thought to change."""

import pytest

from codezero.config import Vote
from codezero.evaluate.copies import program_of
from codezero.evaluate.jobs import MIN_TOKENS, ProgramPrint, fingerprint
from codezero.ledger.ballot import Ballot
from codezero.types import RoundId
from tests.builders import group, rollout, task
from tests.strangers import Reader, ScriptedJudge, evaluator, scored

TESTS = "assert count_even([1, 2]) == 1\nassert count_even([]) == 0"
LOOP = """
def count_even(numbers):
    total = 0
    for index, number in enumerate(numbers):
        if number % 2 == 0:
            total += 1
        elif index > 1000:
            raise ValueError(f"{index} {total!r}")
    return total
"""
SUM = """
import math
def count_even(numbers):
    if not isinstance(numbers, list):
        return 0
    return sum(1 for number in numbers if math.fmod(number, 2) == 0 and not isinstance(number, str))
"""
BROKEN = "def count_even(numbers:"
EDITED = {
    "a blank": LOOP.replace("total = 0", "total  =  0"),
    "a comment": LOOP.replace("total = 0", "total = 0  # mine"),
    "a docstring": LOOP.replace("    total = 0", '    """My own work."""\n    total = 0'),
    "other names": LOOP.replace("total", "n").replace("numbers", "values").replace("index", "i"),
    "names of builtins": LOOP.replace("total", "max").replace("index", "append"),
    "types": LOOP.replace("even(numbers)", "even(numbers: list[int]) -> 'int'"),
    "brackets and quotes": LOOP.replace("number % 2 == 0", "((number % 2) == (0))").replace('"', "'"),
    "imports": "import os, sys\nfrom math import *\n" + LOOP,
    "a helper that nothing calls": LOOP + "\ndef helper(x):\n    return x * 2\n",
    "a variable that nothing reads": LOOP.replace("total = 0", "total = 0; unused = [1, 2]"),
    "code after the end": LOOP + "    print(total)\n    return total + 1\n",
    "a branch never taken": LOOP.replace("    total = 0", "    if False:\n        numbers = []\n    total = 0"),
    "a print of its own": LOOP + "\nprint('hello')\nif __name__ == '__main__':\n    print(count_even([1]))\n",
}
OTHER = {
    "another number": LOOP.replace("1000", "1001"),
    "another comparison": LOOP.replace("index > 1000", "index >= 1000"),
    "another order": LOOP.replace("number % 2 == 0", "0 == number % 2"),
}


def attempts(*codes, **kwargs):
    rollouts = [rollout(text=f"```python\n{code}\n```") for code in codes]
    return group(rollouts, of=task(question="Count even numbers.", tests=TESTS), **kwargs)


def programs_of(*codes):
    return scored(evaluator(ScriptedJudge({}), Reader()), attempts(*codes)).programs


@pytest.fixture(scope="module")
def original():
    return programs_of(LOOP, SUM)


@pytest.mark.parametrize("name", EDITED)
def test_a_group_stays_the_same_when_a_program_is_edited_by(name, original):
    assert original
    assert programs_of(EDITED[name], SUM) == original


def test_a_plagiarist_with_a_ground_key_wins_no_vote():
    """It publishes the author's group after an edit, under an id that comes before all others."""
    ballot, judging = Ballot(Vote.mean, "local"), evaluator(ScriptedJudge({}), Reader())
    author, copier = (
        scored(judging, attempts(code, SUM, peer_id=peer_id), external=True)
        for peer_id, code in (("author", LOOP), ("0", EDITED["other names"]))
    )
    assert copier.rewards
    assert ballot.winners(RoundId(number=1), [author]) == ("author",)
    assert ballot.winners(RoundId(number=2), [copier]) == ("local",)


@pytest.mark.parametrize("name", OTHER)
def test_a_group_is_another_one_with(name, original):
    assert programs_of(OTHER[name], SUM) not in (original, b"")


def test_order_repetition_and_what_does_not_parse_do_not_make_another_group(original):
    assert programs_of(SUM, LOOP) == programs_of(LOOP, SUM, LOOP, BROKEN) == original


def test_a_group_of_which_one_program_is_one_s_own_is_no_copy(original):
    own = "def count_even(numbers):\n    return len([n for n in numbers if not n % 2])"
    assert programs_of(LOOP, SUM, own) != original


def test_a_masked_attempt_makes_no_other_group_of_a_copy(original):
    """One that nobody can tell of would cost the copier nothing."""
    unreadable = "import numpy\ndef count_even(numbers):\n    return int((numpy.array(numbers) % 2 == 0).sum())"
    judging = evaluator(ScriptedJudge(0.5), Reader())
    found = scored(judging, attempts(LOOP, SUM, unreadable))
    assert [reward is None for reward in found.rewards] == [False, False, True]
    assert found.programs == original


def test_short_programs_are_nobody_s_own_also_when_there_are_many_of_the_same():
    assert programs_of(*["def count_even(a):\n    return sum(not x % 2 for x in a)"] * 16) == b""
    assert programs_of(BROKEN, "x" * 30_000) == b""


def test_the_threshold_counts_the_tokens_of_distinct_programs():
    one, other = (ProgramPrint(digest=bytes([n]) * 16, num_tokens=MIN_TOKENS // 2) for n in range(2))
    assert fingerprint([one, one, None]) == b""
    assert fingerprint([one, other]) == fingerprint([other, None, one, one]) != b""


@pytest.mark.parametrize("code", ["'\ud800'", "\ud800 = 1", "f'{x!r:{y}}'", "global _\n_ = 1", "(" * 500, "\0"])
def test_hostile_programs_are_read_without_an_error(code):
    assert program_of(code, None) == program_of(code, None)
