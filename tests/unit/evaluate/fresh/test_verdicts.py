"""What fresh tests do to verdicts: which failures count, for how much, and that no input leaves the worker."""

import json
from concurrent.futures import Future
from dataclasses import replace

import msgspec
import pytest

from codezero.evaluate.copies import program_of
from codezero.evaluate.evaluator import proven
from codezero.evaluate.fresh.draw import FreshTests, draw
from codezero.evaluate.fresh.results import results_of
from codezero.evaluate.jobs import (
    P_FAILED,
    P_FRESH_DOUBTFUL,
    P_FRESH_FAILED,
    P_FRESH_MOSTLY_FAILED,
    P_MEMORISED,
    P_PASSED,
)
from codezero.evaluate.reading import AttemptReader, Fresh
from codezero.evaluate.score_file import grouped, references_of, score_stored
from codezero.tasks.testcases import parse_tests
from codezero.tasks.withheld import Problem
from codezero.types import FreshCases, Outcome, RoundId, SwarmRound
from codezero.workers import Cause, Death
from tests import strangers
from tests.builders import group, rollout, task
from tests.strangers import Reader, ScriptedJudge
from tests.unit.evaluate.test_reading import Deadly

TESTS = "assert f([1, 2]) == 3\nassert f([4, 9, 2]) == 15\nassert f([7]) == 7"
SUM = "def f(xs):\n    return sum(xs)"
LOOP = "def f(xs):\n    total = 0\n    for x in xs:\n        total += x\n    return total"
TABLE = "def f(xs):\n    return {3: 15, 2: 3, 1: 7}[len(xs)]"
WRONG = "def f(xs):\n    return 0"
MOSTLY = "def f(xs):\n    return sum(xs) + (sum(xs) % 2 == 0)"
SEEN = "xs in ([1, 2], [4, 9, 2], [7])"
LAST = f"def f(xs):\n    return sum(xs) if {SEEN} else 7"
LOOPS = f"def f(xs):\n    while not {SEEN}:\n        pass\n    return sum(xs)"
HIDES = f"def f(xs):\n    if not {SEEN}:\n        import numpy\n        xs = numpy.array(xs)\n    return sum(xs)"


class Seeing(ScriptedJudge):
    """A judge that keeps all that it is shown."""

    seen = ()

    def judge(self, solutions):
        self.seen = [*self.seen, *solutions]
        return super().judge(solutions)


class Recording(Reader):
    """Workers that keep the requests and the replies, as bytes."""

    def __init__(self):
        super().__init__()
        self.requests, self.replies = [], []

    def submit(self, job, request, cpu_s, *, fresh=False):
        answer = super().submit(job, request, cpu_s, fresh=fresh)
        self.requests.append(request)
        self.replies.append(msgspec.json.encode(answer.result()).decode())
        return answer


def attempts(*codes, tests=TESTS, **changes):
    one = group([rollout(text=f"```python\n{code}\n```") for code in codes], of=task(tests=tests))
    return replace(one, **changes)


def evaluator(reference_of, workers=None, judge=None, secret=b"secret", count=5, fatal_rules=False, dry_run=True):
    reading = {
        "problem_of": lambda task: Problem(task=task, reference=reference_of(task)),
        "fresh": Fresh(count=count, secret=secret),
    }
    judge = judge or ScriptedJudge({})
    return strangers.evaluator(judge, workers or Reader(), dry_run, reading=reading, fatal_rules=fatal_rules)


def judged(*groups, reference=SUM, external=(), number=1, **given):
    judging = evaluator(lambda task: reference, **given)
    return judging.score(SwarmRound(round_id=RoundId(number=number), local=groups, external=tuple(external)))


def p_of(*codes, **given):
    (found,) = judged(attempts(*codes), **given)
    return [verdict.p_correct for verdict in found.verdicts]


def test_a_right_attempt_passes_and_says_how_many():
    (found,) = judged(attempts(LOOP))
    (verdict,) = found.verdicts
    assert (verdict.p_correct, verdict.fresh) == (P_PASSED, FreshCases(drawn=5, passed=5))


@pytest.mark.parametrize("table", [TABLE, LAST])
def test_a_table_that_passes_what_is_visible_is_found_out_alone(table):
    assert p_of(table) == [P_FRESH_MOSTLY_FAILED]


def test_a_table_behind_a_method_is_found_out():
    def of_class(code):
        return f"{code}\n\nclass Solution:\n    def f(self, xs):\n        return f(xs)"

    made = attempts(of_class(TABLE), of_class(LOOP), tests=TESTS.replace("f(", "Solution().f("))
    (found,) = judged(made, reference=of_class(SUM))
    assert [verdict.p_correct for verdict in found.verdicts] == [P_FRESH_FAILED, P_PASSED]


def test_an_attempt_that_fails_what_another_passes_is_worse_than_one_about_which_nobody_can_tell():
    (alone,), (beside,) = judged(attempts(MOSTLY)), judged(attempts(MOSTLY, LOOP))
    told = [[(verdict.outcome, verdict.p_correct) for verdict in found.verdicts] for found in (alone, beside)]
    assert told[0] == [(Outcome.UNSURE, P_FRESH_DOUBTFUL)]
    assert told[1] == [(Outcome.JUDGED, P_FRESH_FAILED), (Outcome.JUDGED, P_PASSED)]


def test_where_two_attempts_agree_against_the_reference_that_input_is_left_out():
    (found,) = judged(attempts(SUM, LOOP), reference=MOSTLY)
    assert [verdict.p_correct for verdict in found.verdicts] == [P_PASSED] * 2
    assert found.verdicts[0].fresh.passed < found.verdicts[0].fresh.drawn


def test_copies_of_one_attempt_are_one_voice():
    copied = SUM.replace("xs", "numbers")
    assert p_of(SUM, copied, reference=MOSTLY) == [P_FRESH_DOUBTFUL] * 2


def test_a_copy_of_the_reference_has_no_say_in_whether_that_is_right():
    copied = MOSTLY.replace("xs", "numbers")
    assert p_of(SUM, copied, reference=MOSTLY) == [P_FRESH_DOUBTFUL, P_PASSED]
    assert p_of(SUM, LOOP, copied, reference=MOSTLY) == [P_PASSED] * 3


COUNTER = "calls = 0\ndef f(*args):\n    global calls\n    calls += 1\n    return [(10) - 7, (22) - 7][calls - 1]"
CHECK = "def check(candidate):\n    found = []\n    {0}\n    assert found == [3, 15]\n\ncheck(f)"


@pytest.mark.parametrize("reference", [None, SUM])
def test_a_check_that_shows_no_result_tells_neither_right_from_wrong(reference):
    tests = CHECK.format("for xs in ([1, 2], [4, 9, 2]):\n        found.append(candidate(xs))")
    (found,) = judged(attempts(SUM, COUNTER, "def f(xs):\n    return 0", tests=tests), reference=reference)
    assert [verdict.p_correct for verdict in found.verdicts] == [P_FRESH_DOUBTFUL, P_FRESH_DOUBTFUL, P_FAILED]
    assert [verdict.outcome for verdict in found.verdicts[:2]] == [Outcome.UNSURE] * 2


def test_a_counter_fails_the_asserts_of_a_loop():
    tests = (
        "def check(f):\n    for xs, total in [([1, 2], 3), ([4, 9, 2], 15)]:\n        assert f(xs) == total\n\ncheck(f)"
    )
    (found,) = judged(attempts(SUM, COUNTER, tests=tests))
    assert [verdict.p_correct for verdict in found.verdicts] == [P_PASSED, P_FAILED]


def test_tables_that_agree_with_each_other_do_not_outvote_the_reference():
    other = LAST.replace("sum(xs)", "xs[0] + sum(xs[1:])")
    assert p_of(LAST, other) == [P_FRESH_MOSTLY_FAILED] * 2


def test_a_failure_of_what_is_visible_is_as_it_was_and_needs_no_reference():
    workers = Recording()
    assert p_of(WRONG, workers=workers) == [P_FAILED]
    assert p_of(WRONG, LOOP, reference=None) == [P_FAILED, P_PASSED]


def test_what_loops_on_fresh_inputs_has_failed_them():
    assert p_of(LOOPS) == [P_FRESH_MOSTLY_FAILED]


SLOW = "def f(xs):\n    for _ in range(40_000): pass\n    return sum(xs)"


def test_a_program_is_no_constant_because_all_inputs_together_take_long():
    assert p_of(SLOW, reference=MOSTLY, count=12) == [P_FRESH_DOUBTFUL]


def test_some_slow_inputs_leave_the_others_all_steps():
    code = "def f(n):\n    while n < 3: pass\n    for _ in range(40_000): pass\n    return n"
    suite = parse_tests("\n".join(f"assert f({n}) == {n}" for n in range(8)))
    tests = FreshTests(suite=suite, asked=tuple(f"f({n})" for n in range(8)), varied=True)
    (counts,) = results_of([(code, None)], tests, None, seconds=10.0)
    assert (counts.passed, counts.doubtful, counts.unknown, counts.constant) == (5, 3, 0, False)


def test_a_slow_way_to_right_results_is_masked_though_others_are_fast():
    fast = "def f(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a"
    slow = "def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)"
    suite = parse_tests("\n".join(f"assert f({n}) == {fib}" for n, fib in [(6, 8), (7, 13), (8, 21), (30, 832040)]))
    tests = FreshTests(suite=suite, asked=("f(6)", "f(7)", "f(8)", "f(30)"), varied=True)
    counts, other = results_of([(code, program_of(code, "f")) for code in (slow, fast)], tests, None, seconds=20.0)
    assert (counts.passed, counts.failed, counts.doubtful, other.passed) == (3, 0, 1, 4)


def test_truth_values_dispute_no_result_of_the_reference():
    odd, even = (
        "def f(n):\n    return n % 2 == 1",
        "def f(n):\n    if n % 2 == 0:\n        return False\n    return True",
    )
    suite = parse_tests("\n".join(f"assert f({n}) == {n in (3, 5, 7, 11)}" for n in (3, 4, 5, 7, 9, 11)))
    tests = FreshTests(suite=suite, asked=tuple(f"f({n})" for n in (3, 4, 5, 7, 9, 11)), varied=True)
    for counts in results_of([(code, program_of(code, "f")) for code in (odd, even)], tests, None, seconds=20.0):
        assert (counts.passed, counts.doubtful) == (5, 1)


def test_what_hides_from_the_dry_run_on_fresh_inputs_goes_to_the_judge():
    judge = ScriptedJudge({HIDES: 0.6})
    (found,) = judged(attempts(HIDES), judge=judge)
    assert (found.verdicts[0].fresh.unknown, found.verdicts[0].p_correct, judge.asked) == (5, 0.6, [HIDES])


@pytest.mark.parametrize("reference", [None, WRONG, "def f(", "def f(xs):\n    import numpy"])
def test_without_a_reference_that_passes_nothing_changes(reference):
    (found,) = judged(attempts("def f(xs):\n    return sum(xs) if len(xs) < 4 else 0", LOOP), reference=reference)
    assert [verdict.p_correct for verdict in found.verdicts] == [P_PASSED] * 2
    assert all(verdict.fresh.unverified and verdict.fresh.drawn == 0 for verdict in found.verdicts)


@pytest.mark.parametrize("reference", [None, WRONG, "def f(xs):\n    import numpy"])
def test_a_reference_that_gives_no_fresh_tests_hides_no_table(reference):
    table = "def f(xs):\n    return {3: 15, 2: 3, 1: 7}[len(xs)] if xs in ([1, 2], [4, 9, 2], [7]) else 0"
    assert p_of(table, reference=reference) == [P_MEMORISED]


@pytest.mark.parametrize(
    "code",
    [
        "from decimal import Decimal\ndef f(xs):\n    return Decimal(ANSWER)",
        "def f(xs):\n    for _ in range(40_000): pass\n    return ANSWER",
    ],
    ids=["no literal", "slow"],
)
def test_a_table_whose_values_cannot_be_had_is_not_taken_for_right(code):
    answer = "({3: 15, 2: 3, 1: 7}[len(xs)] if xs in ([1, 2], [4, 9, 2], [7]) else 0)"
    assert p_of(code.replace("ANSWER", answer), reference=None) == [P_FRESH_DOUBTFUL]


def test_own_and_peers_groups_of_a_round_have_one_seed_and_rounds_tasks_and_nodes_another():
    def seeds(*groups, **given):
        workers = Recording()
        judged(*groups, workers=workers, **given)
        return {request.seed for request in workers.requests}

    same = seeds(attempts(SUM), attempts(LOOP), external=[attempts(TABLE, peer_id="p", address="10.0.0.1")])
    assert len(same) == 1
    assert seeds(attempts(SUM)) == same
    assert seeds(attempts(SUM), number=2) != same
    assert seeds(attempts(SUM, tests=TESTS.replace("7", "8"))) != same
    assert seeds(attempts(SUM), secret=b"another") != same


def test_neither_inputs_nor_reference_leave_the_worker_or_reach_the_judge():
    marked = SUM.replace("def f(xs):", "def f(xs):\n    reference_mark = 0")
    workers, judge = Recording(), Seeing({HIDES: 0.6})
    found = judged(attempts(LOOP, TABLE, MOSTLY, HIDES), reference=marked, workers=workers, judge=judge)
    (request,) = workers.requests
    inputs = draw(parse_tests(TESTS), {"f"}, marked, seed=request.seed, count=5, seconds=5.0).asked
    assert len(inputs) == 5
    for text in [*workers.replies, repr(found), repr(judge.seen)]:
        assert text
        assert not [one for one in ("reference_mark", *(one[2:-1] for one in inputs)) if one in text]
    assert len(judge.seen) == 1


MONTHS = "assert f(2) == 28\nassert f(4) == 30\nassert f(11) == 30\nassert f(12) == 31"
DAYS = "def f(m):\n    return 28 if m == 2 else 30 if m in (4, 6, 9, 11) else 31"
BY_HEART = "def f(m):\n    return {2: 28, 4: 30, 11: 30, 12: 31}.get(m, 0)"
COLOURS = "assert f('red') == 'stop'\nassert f('green') == 'go'\nassert f('amber') == 'wait'"
SIGNS = "def f(s):\n    return {'red': 'stop', 'green': 'go', 'amber': 'wait'}.get(s, 'none')"


@pytest.mark.parametrize(
    ("code", "tests", "reference", "told"),
    [
        (DAYS, MONTHS, "def f(m):\n    return 28 + int('303232332323'[m - 1])", P_PASSED),
        (DAYS, MONTHS, None, P_FRESH_DOUBTFUL),
        (BY_HEART, MONTHS, DAYS, P_FRESH_MOSTLY_FAILED),
        (BY_HEART, MONTHS, None, P_MEMORISED),
        (SIGNS, COLOURS, SIGNS, P_FRESH_DOUBTFUL),
        (f"import numpy\n{DAYS}\nnumpy.array(1)", MONTHS, None, P_FRESH_DOUBTFUL),
        (DAYS.replace("28", "29"), MONTHS, DAYS, P_FAILED),
    ],
    ids=["passes", "nothing to pass", "fails", "by heart", "one default", "left open", "fails its tests"],
)
def test_a_small_table_is_masked_unless_fresh_tests_tell(code, tests, reference, told):
    (found,) = judged(attempts(code, tests=tests), reference=reference, fatal_rules=True)
    (verdict,) = found.verdicts
    assert verdict.p_correct == told
    assert (found.rewards == (None,)) is (told == P_FRESH_DOUBTFUL)


def test_without_a_dry_run_a_small_table_breaks_a_fatal_rule():
    (found,) = judged(attempts(DAYS, tests=MONTHS), fatal_rules=True, dry_run=False)
    assert [verdict.p_correct for verdict in found.verdicts] == [P_FAILED]


def test_measuring_cannot_tell_of_a_small_table_or_of_a_group_whose_tests_are_hostile():
    attempt_reader = AttemptReader(Reader(), dry_run=True, fatal_rules=True, show=False)
    codes = (DAYS, "def f(m):\n    return 28 + m")
    assert proven(attempt_reader, attempts(*codes, tests=MONTHS)) == [None, False]
    hostile = attempts(*codes, tests=f"{MONTHS}\nassert f(kill_here) == 3")
    killed = AttemptReader(Deadly(), dry_run=True, fatal_rules=True, show=False)
    more = replace(hostile, rollouts=(*hostile.rollouts, rollout(text="no code")))
    assert proven(killed, more) == [None, None, False]


class KilledByReferences(Reader):
    """Workers that die where they draw from a reference."""

    def __init__(self):
        super().__init__()
        self.with_reference = 0

    def submit(self, job, request, cpu_s, *, fresh=False):
        if request.reference is None:
            return super().submit(job, request, cpu_s, fresh=fresh)
        self.with_reference += 1
        answer = Future()
        answer.set_result(Death(Cause.SIGNAL, "SIGSEGV"))
        return answer


def test_a_reference_that_kills_costs_no_attempt_and_no_author_anything():
    workers = KilledByReferences()
    peers = [attempts(LOOP, WRONG, peer_id=f"p{n}", address="10.0.0.1") for n in range(4)]
    own, *found = judged(attempts(LOOP, WRONG), workers=workers, external=peers)
    for one in (own, *found):
        assert (one.refused, [verdict.p_correct for verdict in one.verdicts]) == (None, [P_PASSED, P_FAILED])
        assert [verdict.outcome for verdict in one.verdicts] == [Outcome.JUDGED] * 2


@pytest.mark.parametrize("reference", [SUM, f"{SUM}\n# \ud800"], ids=["plain", "surrogate"])
def test_a_reference_that_kills_is_not_used_again(reference):
    workers = KilledByReferences()
    judging = evaluator(lambda task: reference, workers)
    for number in (1, 2):
        judging.score(SwarmRound(round_id=RoundId(number=number), local=(attempts(LOOP),), external=()))
    assert workers.with_reference == 2  # in the first round: the group, then the reference alone


def test_a_line_may_bring_its_reference():
    fields = {"question": "Add.", "tests": TESTS, "source": "mbpp", "group": "a"}
    lines = [json.dumps({**fields, "solution": f"```python\n{code}\n```", "reference": SUM}) for code in (LOOP, TABLE)]
    groups = grouped(lines)
    judging = evaluator(references_of(groups).get)
    right, table = score_stored(groups, judging)
    assert (right["p_correct"], right["fresh"]["passed"]) == (P_PASSED, 5)
    assert (table["p_correct"], table["fresh"]["drawn"]) == (P_FRESH_FAILED, 5)
    (bad,) = score_stored(grouped([json.dumps({**fields, "solution": "x", "reference": 3})]), judging)
    assert "reference must be text" in bad["error"]
