import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from codezero.tasks.candidates import SIZE, Candidates, Informative
from codezero.tasks.mbpp import to_problem, to_task
from codezero.tasks.mixture import Mixture
from codezero.tasks.sources import ListSource, StreamSource
from codezero.tasks.withheld import Withheld
from codezero.types import Task, TaskOrigin
from tests.builders import rollout, scored
from tests.unit.tasks.builders import mbpp_rows, mixture_of, numbered_tasks, questions

RATES = (0.0, 0.0, 0.5, 1.0)
"""Of the tasks in turn."""


def group(task, right: int, size: int = 4, **kwargs):
    return scored([rollout()] * size, [1.0] * right + [0.0] * (size - right), of=task, **kwargs)


def number_of(task) -> int:
    return int(task.question.split()[-1].rstrip("."))


def informative(count: int = 40, level=lambda i: None) -> Mixture:
    tasks = [replace(task, difficulty=level(i)) for i, task in enumerate(numbered_tasks("a", count))]
    return mixture_of([(Informative(ListSource("a", tasks, 0), 0, Withheld()), 1.0)], 0)


def play(
    mixture, rounds: int, rate=lambda i: RATES[i % 4], num_tasks: int = 2, start: int = 0, is_solved=lambda i: True
):
    """Rounds in which a task's attempts succeed with its rate, if it is solved at all; returns the numbers of the tasks
    drawn."""
    drawn = []
    for number in range(start, start + rounds):
        tasks = mixture.draw(num_tasks)
        rng = random.Random(number)
        solved = [one for one in tasks if is_solved(number_of(one))]
        mixture.note([group(one, sum(rng.random() < rate(number_of(one)) for _ in range(4))) for one in solved])
        drawn += [number_of(one) for one in tasks]
    return drawn


def test_tasks_that_are_sometimes_solved_come_more_often_and_none_is_given_up():
    drawn = Counter(i % 4 for i in play(informative(), 400)[200:])
    assert drawn[2] / 600 > 0.7
    assert min(drawn[0], drawn[1], drawn[3]) > 0


def test_a_task_that_becomes_solvable_is_found():
    drawn = play(informative(), 600, rate=lambda i: 0.5 if i == 1 else 0.0)
    assert Counter(drawn[600:])[1] > 0.3 * 600


def test_tasks_that_are_learnt_make_room():
    attempts = Counter()

    def rate(number):
        attempts[number] += 1
        return 0.5 if attempts[number] <= 8 else 1.0  # learnt after two groups

    assert len(set(play(informative(300), 200, rate))) > 130  # of 400 draws


def test_what_is_learned_of_a_level_is_expected_of_its_other_tasks():
    mixture = informative(SIZE, level=lambda i: 1 + i % 2)
    first = play(mixture, 10, rate=lambda i: 0.5 if i % 2 else 0.0)
    assert Counter(i % 2 for i in first + play(mixture, 10, rate=lambda i: 0.5, start=10))[1] >= 24


def test_no_task_comes_twice_in_a_round_while_there_are_others():
    mixture = informative(5)
    for _ in range(30):
        tasks = mixture.draw(3)
        assert len(set(questions(tasks))) == 3
        mixture.note([group(one, 2) for one in tasks])


def test_more_tasks_a_round_than_there_are_come_again():
    assert len(informative(3).draw(8)) == 8


@pytest.mark.parametrize("position", [0, 1, 7, 40])
def test_a_resumed_node_draws_what_an_unkilled_one_would(position):
    whole, killed, resumed = informative(90), informative(90), informative(90)
    expected = play(whole, 60)
    assert play(killed, position) == expected[: 2 * position]
    resumed.load_state_dict(json.loads(json.dumps(killed.state_dict())))
    assert resumed.state_dict() == killed.state_dict()
    assert play(resumed, 60 - position, start=position) == expected[2 * position :]
    assert resumed.state_dict() == whole.state_dict()


def two_sources() -> Mixture:
    """The tasks of `hard` have numbers from 1000."""
    tasks = {"easy": numbered_tasks("a", 60), "hard": numbered_tasks("b", 1060)[1000:]}
    sources = [Informative(ListSource(name, one, 0), 0, Withheld()) for name, one in tasks.items()]
    return mixture_of([(source, 1.0) for source in sources], 0)


def too_hard(number: int) -> float:
    return 0.0 if number >= 1000 else 0.5


def test_a_source_whose_tasks_are_all_too_hard_is_drawn_from_less_and_not_given_up():
    mixture = two_sources()
    play(mixture, 50, too_hard)
    assert 0.03 < sum(number >= 1000 for number in play(mixture, 300, too_hard, start=50)) / 600 < 0.15
    changed = play(mixture, 300, lambda number: 0.5 - too_hard(number), start=350)  # now only they teach
    assert sum(number >= 1000 for number in changed[300:]) / 300 > 0.7


@pytest.mark.parametrize("position", [1, 40])
def test_a_resumed_node_draws_from_each_source_as_an_unkilled_one_would(position):
    whole, killed, resumed = two_sources(), two_sources(), two_sources()
    expected = play(whole, 60, too_hard)
    play(killed, position, too_hard)
    resumed.load_state_dict(json.loads(json.dumps(killed.state_dict())))
    assert play(resumed, 60 - position, too_hard, start=position) == expected[2 * position :]


@pytest.mark.parametrize("every", [1, 4])
def test_tasks_without_a_group_age_also_until_a_resumed_source_is_drawn_from(every):
    def fits(number: int) -> bool:
        return number % 3 != 0

    whole, resumed = two_sources(), two_sources()
    expected = play(whole, 60, too_hard, is_solved=fits)
    drawn = []
    for number in range(60):
        drawn += play(resumed, 1, too_hard, start=number, is_solved=fits)
        state = json.loads(json.dumps(resumed.state_dict()))
        if number % every == 0:  # between, a source may not have been drawn from
            resumed = two_sources()
            resumed.load_state_dict(state)
    assert drawn == expected


def streamed(withheld: Withheld) -> Mixture:
    def made(row):
        problem = to_problem(row, show_all_tests=False)
        withheld.keep_drawn(problem)
        return problem.task

    source = StreamSource("mbpp", "fake", lambda epoch: iter(mbpp_rows(200)), made, Counter())
    return mixture_of([(Informative(source, 0, withheld), 1.0)], 0, withheld=withheld)


def test_a_streams_tasks_keep_their_references_over_a_restart_and_while_others_are_forgotten(monkeypatch):
    monkeypatch.setattr("codezero.tasks.withheld.MAX_DRAWN", SIZE + 2)
    first, withheld = streamed(Withheld()), Withheld()
    play(first, 50)
    resumed = streamed(withheld)
    resumed.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for _ in range(200):
        tasks = resumed.draw(2)
        assert all(withheld.problem(task).reference for task in tasks)
        resumed.note([group(task, 2) for task in tasks])


def test_a_task_in_sight_is_asked_as_the_settings_now_have_it():
    def mixture(show_all):
        tasks = [to_task(row, show_all) for row in mbpp_rows(9)]
        return mixture_of([(Informative(ListSource("a", tasks, 0), 0, Withheld()), 1.0)], 0)

    before, after = mixture(True), mixture(False)
    play(before, 9)
    after.load_state_dict(before.state_dict())
    shown, few = before.draw(3), after.draw(3)
    assert [one.question.splitlines()[0] for one in shown] == [one.question.splitlines()[0] for one in few]
    assert all(len(one.question) > len(less.question) for one, less in zip(shown, few, strict=True))


def test_a_stream_is_not_read_further_than_it_is_drawn_from():
    mixture = streamed(Withheld())
    mixture.draw(2)
    assert mixture.state_dict()["sources"]["mbpp"]["cursor"] <= SIZE + 2


def test_a_uniform_nodes_position_is_taken_up_and_given_back():
    uniform = mixture_of([(ListSource("a", numbered_tasks("a", 90), 0), 1.0)], 0)
    before = questions(uniform.draw(30))
    drawing = informative(90)
    drawing.load_state_dict(uniform.state_dict())
    assert not set(before) & set(questions(drawing.draw(2)))  # in sight is what comes next
    uniform.load_state_dict(drawing.state_dict())
    assert len(uniform.draw(90)) == 90


def test_other_rows_have_no_candidates():
    old, new = informative(60), informative(50)
    play(old, 30)
    new.load_state_dict(old.state_dict())
    assert set(play(new, 100)) <= set(range(50))


def candidates(**changes) -> Candidates:
    made = Candidates("a", 0, 5, **changes)
    for task in numbered_tasks("a", 5):
        made.add(task)
    return made


def test_a_task_without_a_verdict_leaves_sight():
    made = candidates()
    task = made.draw(lambda: None)
    made.note([scored([rollout()] * 4, (), of=task)])
    assert task not in made.tasks
    assert made.has_room


def test_masked_attempts_count_neither_way():
    one, other = candidates(), candidates()
    for made, rewards in ((one, [1.0, 0.0, None, None]), (other, [1.0, 0.0])):
        task = made.draw(lambda: None)
        made.note([scored([rollout()] * len(rewards), rewards, of=task)])
    assert one.state_dict() == other.state_dict()


def test_hostile_peers_groups_neither_steer_nor_fill_what_is_drawn():
    made = candidates()
    own = made.draw(lambda: None)
    before = made.state_dict()["tasks"]
    strangers = [Task(origin=TaskOrigin.MBPP, question=f"q {i}", tests="assert True") for i in range(10_000)]
    drawn_by_us = [group(own, right, external=True, peer_id="Qm") for right in (0, 2, 4)]
    not_drawn = [group(task, 2, external=True) for task in (*strangers, *numbered_tasks("a", 5))]
    made.note([group(own, 2), *drawn_by_us, *not_drawn, group(numbered_tasks("a", 5)[-1], 4)])
    changed = [new for old, new in zip(before, made.state_dict()["tasks"], strict=True) if old != new]
    assert [(one["successes"], one["failures"]) for one in changed] == [(2, 2)]


def test_a_flood_leaves_in_sight_what_teaches_and_its_own_newest():
    made = candidates()
    own = made.draw(lambda: None)
    made.note([group(own, 2)])
    for task in numbered_tasks("flood", 1000):
        made.add(task)
    assert len(made.tasks) == 5
    assert own in made.tasks
    assert numbered_tasks("flood", 1000)[-1] in made.tasks
