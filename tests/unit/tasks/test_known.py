"""Which tasks of peers a node with `swarm.tasks=known` trains on, with the texts that peers would try."""

from dataclasses import replace

import pytest

from codezero.config import BuiltinConfig, DatasetConfig, PeerTasks, TasksConfig
from codezero.tasks.build import make_task_source
from codezero.tasks.known import WantedTasks, rule
from codezero.tasks.mbpp import to_task as mbpp_task
from codezero.tasks.problems import load_problems
from codezero.tasks.proposed import MAX_KNOWN, WithProposals, to_task
from codezero.tasks.withheld import Problem, Withheld, id_of
from codezero.types import TaskOrigin
from tests.builders import proposal, task
from tests.unit.network.wire_builders import heard
from tests.unit.tasks.builders import mbpp_row, mbpp_rows, mixture_of, write_jsonl


def with_proposals(sources, *proposals, why_not=lambda proposal: None):
    return WithProposals(sources, 1.0, lambda: proposals, why_not)


def knows(sources, *proposals, setting=PeerTasks.known):
    tasks = with_proposals(sources, *proposals)
    tasks.draw(1)
    return predicate(sources, tasks, setting)


def predicate(sources, tasks, setting=PeerTasks.known):
    wanted = WantedTasks(setting, sources.withheld, tasks)
    return lambda task: wanted.why_not(task) is None


@pytest.fixture
def sources(tmp_path):
    """MBPP's train split, from a file that has a row of another split too, and built-in problems of level 1."""
    rows = [*mbpp_rows(5), mbpp_row(task_id=11, text="Write a function of the test split.")]
    config = TasksConfig(
        mbpp=DatasetConfig(weight=1.0, path=write_jsonl(tmp_path / "mbpp.jsonl", rows)),
        builtin=BuiltinConfig(weight=1.0, max_difficulty=1),
    )
    return make_task_source(config, seed=0)


BUILTIN = load_problems(1, 1)[0].task
HARD = load_problems(5, 5)[0].task
ROW = mbpp_task(mbpp_rows(1)[0])


@pytest.mark.parametrize("known", [BUILTIN, HARD, ROW], ids=["built-in", "built-in of another level", "own file"])
def test_what_the_node_could_draw_itself_is_known(sources, known):
    assert knows(sources)(known)


@pytest.mark.parametrize(
    "invented",
    [
        task("Write a function backdoor(x) that returns the password.", "assert backdoor(1) == 'hunter2'"),
        task(BUILTIN.question, "assert True"),
        task(BUILTIN.question, ""),
        task(BUILTIN.question, BUILTIN.tests + "\nassert backdoor()"),
        task(BUILTIN.question, BUILTIN.tests + " "),
        task(BUILTIN.question, ROW.tests),
        task(BUILTIN.question + BUILTIN.tests[0], BUILTIN.tests[1:]),
        task(BUILTIN.question + BUILTIN.tests, ""),
        task(ROW.question.split("\n")[0], ROW.tests),
        task("", ""),
        mbpp_task(mbpp_row(task_id=11, text="Write a function of the test split.")),
        to_task(proposal("nobody_took_this_up")),
    ],
    ids=[
        "an invented task",
        "a known question with a stranger's tests",
        "a known question without tests",
        "a known question with one test more",
        "a known question with other white space in its tests",
        "a known question with the tests of another",
        "a letter moved from the tests to the question",
        "all tests moved to the question",
        "a known task without the prompt around it",
        "nothing",
        "a task of a split that is not drawn from",
        "a proposal that was not taken up",
    ],
)
def test_what_it_could_not_is_not(sources, invented):
    assert not knows(sources, proposal("f"))(invented)
    assert knows(sources, setting=PeerTasks.any)(invented)


@pytest.mark.parametrize("known", [BUILTIN, ROW, to_task(proposal("f"))], ids=["built-in", "own file", "proposal"])
def test_a_known_task_is_known_from_either_wire(sources, known):
    assert all(map(knows(sources, proposal("f")), heard(known)))


@pytest.mark.parametrize("show_all", [True, False], ids=["this node shows all", "this node shows few"])
def test_a_task_is_known_whether_its_question_shows_all_tests_or_few(tmp_path, show_all):
    file = DatasetConfig(weight=1.0, path=write_jsonl(tmp_path / "mbpp.jsonl", mbpp_rows(1)))
    sources = make_task_source(TasksConfig(mbpp=file, show_all_tests=show_all), seed=0)
    taken_up = proposal("f", tests="assert f(1) == 2\nassert f(2) == 3")
    tasks = WithProposals(sources, 1.0, lambda: [taken_up], lambda one: None, show_all_tests=show_all)
    tasks.draw(1)
    is_known = predicate(sources, tasks)
    for all_tests in (True, False):
        assert is_known(mbpp_task(mbpp_rows(1)[0], all_tests))
        assert is_known(to_task(taken_up, all_tests))
    few = mbpp_task(mbpp_rows(1)[0], show_all_tests=False)
    assert not is_known(task(few.question.replace("double(2) == 4", "double(0) == 0"), few.tests))
    assert not is_known(task(few.question, "assert double(2) == 4"))
    assert not is_known(task(few.question, few.tests + "\nassert backdoor()"))


def test_a_proposal_that_was_taken_up_is_known_before_and_after_a_restart(sources):
    taken_up, refused = proposal("f"), proposal("refused")
    tasks = with_proposals(sources, taken_up, refused, why_not=lambda p: "unsafe" if p is refused else None)
    is_known = predicate(sources, tasks)
    assert not is_known(to_task(taken_up))
    tasks.draw(2)
    resumed = with_proposals(sources)
    is_known_later = predicate(sources, resumed)
    resumed.load_state_dict(tasks.state_dict())
    for known in (is_known, is_known_later):
        assert known(to_task(taken_up))
        assert not known(to_task(refused))
        assert not known(to_task(proposal("f", tests="assert f(1) == 3")))


def test_a_state_of_version_0_1_0_has_taken_nothing_up(sources):
    tasks = with_proposals(sources, proposal("f"))
    tasks.draw(1)
    state = tasks.state_dict()
    del state["taken_up"]
    tasks.load_state_dict(state)
    assert not predicate(sources, tasks)(to_task(proposal("f")))


def test_a_flood_of_proposals_leaves_the_newest_known_and_the_memory_as_it_is(sources):
    flood = [proposal(f"f{i}") for i in range(MAX_KNOWN + 1)]
    tasks = with_proposals(sources, *flood)
    tasks.draw(1)
    assert len(tasks.state_dict()["taken_up"]) == MAX_KNOWN
    is_known = predicate(sources, tasks)
    assert is_known(to_task(flood[-1]))
    assert not is_known(to_task(flood[0]))


class Listed:
    """Has the part of HubTaskIds that is asked."""

    name = "code_contests"

    def __init__(self, *tasks, is_complete=True):
        self._ids, self.is_complete = {id_of(one) for one in tasks}, is_complete

    def __contains__(self, name):
        return name in self._ids


@pytest.mark.parametrize(("is_complete", "reason"), [(False, "unlisted_task"), (True, "unknown_task")])
def test_a_task_of_a_dataset_is_known_once_it_is_listed(sources, is_complete, reason):
    listed, other = (replace(task(text, "Input:\n1\nOutput:\n2\n"), origin=TaskOrigin.CODE_CONTESTS) for text in "ab")
    lists = [Listed(listed, is_complete=is_complete)]
    wanted = WantedTasks(PeerTasks.known, sources.withheld, with_proposals(sources), lists)
    assert wanted.why_not(listed) is None
    assert wanted.why_not(other) == reason
    assert wanted.why_not(replace(listed, tests="Input:\n1\nOutput:\n3\n")) == reason
    assert wanted.why_not(replace(other, origin=TaskOrigin.MBPP)) == "unknown_task"


def test_a_known_problem_in_the_name_of_an_environment_is_not_known(sources):
    """Its tests would be taken for the right answer, which attempts then learn to recite."""
    assert not knows(sources)(replace(ROW, origin=TaskOrigin.ENVIRONMENT, environment="sums"))


def test_tasks_of_environments_are_wanted_only_where_these_are_loaded_and_any_task_is(sources):
    own, theirs = (replace(ROW, origin=TaskOrigin.ENVIRONMENT, environment=name) for name in ("ours", "theirs"))
    reasons = {}
    for setting in PeerTasks:
        wanted = WantedTasks(setting, sources.withheld, with_proposals(sources), environments=["ours"])
        reasons[setting] = wanted.why_not(own), wanted.why_not(theirs), wanted.why_not(ROW)
    assert reasons == {
        PeerTasks.any: (None, "unknown_environment", None),
        PeerTasks.known: ("unknown_task", "unknown_environment", None),
    }


def test_what_a_stream_has_drawn_is_known_before_it_is_listed():
    withheld = Withheld()
    drawn = replace(task("drawn", "Input:\n1\nOutput:\n2\n"), origin=TaskOrigin.CODE_CONTESTS)
    withheld.keep_drawn(Problem(task=drawn))
    tasks = with_proposals(mixture_of([], seed=0))
    assert WantedTasks(PeerTasks.known, withheld, tasks, [Listed(is_complete=False)]).why_not(drawn) is None


def test_held_out_problems_are_trained_on_with_no_setting(sources):
    for setting in PeerTasks:
        wanted = WantedTasks(setting, sources.withheld, with_proposals(sources), held_out=[ROW])
        assert wanted.why_not(ROW) == "unknown_task"


def test_the_rule_is_told_in_a_sentence():
    datasets = TasksConfig(mbpp=DatasetConfig(weight=1.0), modules=["my.sums"])
    assert rule(PeerTasks.known, datasets) == (
        "only those that this node knows itself, with their tests: built-in problems, mbpp and proposals that it has "
        "checked; none of sums, which cannot be checked (swarm.tasks=known)"
    )
    assert rule(PeerTasks.any, datasets).startswith("any, also those whose tests reward wrong answers")
