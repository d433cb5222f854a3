import json

import pytest

from codezero.config import TaskDraw
from codezero.tasks.proposed import MAX_KNOWN, MAX_STOCK, MOST_GROUPS, WithProposals, proposed_candidates, to_task
from codezero.tasks.sources import ListSource
from codezero.types import TaskOrigin
from tests.builders import proposal, rollout, scored, task
from tests.unit.tasks.builders import mixture_of


class Swarm:
    """What proposers have published: a batch a look."""

    def __init__(self, *batches):
        self.batches = list(batches)
        self.looks = 0
        self.rejected = {}

    def collect(self):
        self.looks += 1
        return self.batches.pop(0) if self.batches else ()

    def take_rejected(self):
        rejected, self.rejected = self.rejected, {}
        return rejected


def mixture():
    tasks = [task(f"built-in question {i}") for i in range(10)]
    return mixture_of([(ListSource("builtin", tasks, seed=0), 1.0)], seed=0)


def source(swarm, share=0.5, why_not=lambda proposal: None):
    return WithProposals(mixture(), share, swarm.collect, why_not, swarm.take_rejected)


def origins(tasks):
    return [one.origin for one in tasks]


B, P = TaskOrigin.BUILTIN, TaskOrigin.PROPOSER


def test_a_proposal_becomes_a_task_that_shows_its_tests_and_remembers_where_it_is_from():
    asked = proposal("add_one", difficulty=3)
    made = to_task(asked)
    assert made.question == (
        "Write a function add_one(x) that returns one more than the number x.\n\nKeep to the function name and the "
        "arguments used in these tests:\nassert add_one(1) == 2\nassert add_one(-1) == 0"
    )
    assert (made.origin, made.difficulty, made.proposal) == (TaskOrigin.PROPOSER, 3, asked)
    assert made.tests == asked.tests


def test_a_source_that_shows_few_tests_asks_with_the_first():
    tasks = WithProposals(mixture(), 1.0, lambda: [proposal("add_one")], lambda one: None, show_all_tests=False)
    (drawn,) = tasks.draw(1)
    assert drawn.question.endswith("used in these tests:\nassert add_one(1) == 2")
    assert drawn.tests == "assert add_one(1) == 2\nassert add_one(-1) == 0"


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, [B, B, B, B, B, B]),
        (0.5, [B, P, B, P, B, P]),
        (1.0, [P, P, P, P, P, P]),
        (0.3, [B, B, B, P, B, B]),
    ],
)
def test_the_share_of_draws_is_exact_however_they_are_grouped(share, expected):
    swarm = Swarm([proposal(f"f{i}") for i in range(9)])
    together = source(swarm, share).draw(6)
    again = source(Swarm([proposal(f"f{i}") for i in range(9)]), share)
    assert origins(together) == expected
    assert tuple(one for _ in range(6) for one in again.draw(1)) == together


def test_without_proposals_all_tasks_come_from_the_other_sources():
    drawn = source(Swarm()).draw(4)
    assert origins(drawn) == [B, B, B, B]
    assert drawn == mixture().draw(4)


def test_a_node_that_leaves_proposals_alone_does_not_even_look():
    swarm = Swarm([proposal()])
    source(swarm, share=0.0).draw(4)
    assert swarm.looks == 0


def test_no_proposal_is_drawn_twice_even_if_it_is_shown_again():
    tasks = source(Swarm([proposal("a")], [proposal("a"), proposal("b")], [proposal("a")]), share=1.0)
    names = [one.proposal and one.proposal.question.split()[3] for one in tasks.draw(1) + tasks.draw(2)]
    assert names == ["a(x)", "b(x)", None]


def test_the_newest_proposals_come_first_and_the_oldest_are_given_up():
    old = [proposal(f"old{i}") for i in range(MAX_STOCK)]
    tasks = source(Swarm(old, [proposal("new")]), share=1.0)
    tasks.draw(1)
    drawn = tasks.draw(MAX_STOCK)
    assert "new(x)" in drawn[0].question
    assert all(one.origin is P for one in drawn)
    assert tasks.draw(1)[0].origin is B  # old0 went first, and no 65 were ever kept


def test_refused_proposals_are_counted_by_reason_with_what_the_network_refused():
    swarm = Swarm([proposal("a"), proposal("bad")])
    swarm.rejected = {"malformed": 3}
    tasks = source(swarm, share=1.0, why_not=lambda p: "unsafe" if "bad" in p.question else None)
    assert origins(tasks.draw(2)) == [P, B]
    assert tasks.take_skipped() == {"proposal_unsafe": 1, "proposal_malformed": 3}
    assert tasks.take_skipped() == {}


def test_a_resumed_source_draws_alike_and_does_not_take_what_it_had():
    batch = [proposal(f"f{i}") for i in range(4)]
    first = source(Swarm(batch))
    first.draw(3)
    state = first.state_dict()
    resumed = source(Swarm(batch))
    resumed.load_state_dict(state)
    assert resumed.draw(5) == first.draw(5)


def test_a_flood_of_proposals_does_not_grow_the_memory():
    tasks = source(Swarm(*[[proposal(f"f{n}_{i}") for i in range(100)] for n in range(60)]), share=1.0)
    for _ in range(60):
        tasks.draw(1)
    state = tasks.state_dict()
    assert len(state["stock"]) == MAX_STOCK - 1
    assert len(state["known"]) == MAX_KNOWN


def informative(*batches):
    candidates = proposed_candidates(TaskDraw.informative, seed=0)
    return WithProposals(mixture(), 1.0, Swarm(*batches).collect, lambda one: None, candidates=candidates)


def tried(task, right):
    return scored([rollout()] * 4, [1.0] * right + [0.0] * (4 - right), of=task)


def test_a_proposal_comes_again_while_it_is_sometimes_solved_but_not_for_ever():
    tasks = informative([proposal("coin")])
    drawn = []
    for _ in range(MOST_GROUPS + 1):
        drawn += tasks.draw(1)
        tasks.note([tried(drawn[-1], 2)])
    assert origins(drawn) == [P] * MOST_GROUPS + [B]


@pytest.mark.parametrize("right", [0, 4])
def test_a_proposal_that_all_or_none_solve_comes_once(right):
    tasks = informative([proposal("f")])
    drawn = tasks.draw(1)
    tasks.note([tried(drawn[0], right)])
    assert origins(drawn + tasks.draw(1)) == [P, B]


def test_a_resumed_node_draws_the_same_proposals():
    batch = [proposal(f"f{i}", difficulty=1 + i % 5) for i in range(20)]
    whole, resumed = informative(batch), informative(batch)
    for round_number in range(9):
        whole.note([tried(task, round_number % 5) for task in whole.draw(2)])
    resumed.load_state_dict(json.loads(json.dumps(whole.state_dict())))
    assert resumed.state_dict() == whole.state_dict()
    assert [resumed.draw(2) for _ in range(4)] == [whole.draw(2) for _ in range(4)]


def test_a_stock_of_a_uniform_node_is_drawn_from():
    old = source(Swarm([proposal(f"f{i}") for i in range(4)]), share=1.0)
    old.draw(1)
    tasks = informative()
    tasks.load_state_dict(old.state_dict())
    assert origins(tasks.draw(4)) == [P, P, P, B]


def test_hostile_proposals_that_can_only_be_guessed_leave_others_their_turns():
    """Under however many names they come: half of what is collected is honest, solved by all and drawn once."""
    batches = (
        [proposal(f"{kind}{n}_{i}", f"{kind}{i}") for kind in ("coin", "good") for i in range(16)] for n in range(200)
    )
    tasks = informative(*batches)
    honest = 0
    for _ in range(200):
        (task,) = tasks.draw(1)
        is_honest = task.proposal.peer_id.startswith("good")
        honest += is_honest
        tasks.note([tried(task, 4 if is_honest else 2)])
    assert len(tasks.state_dict()["stock"]) <= MAX_STOCK
    assert honest > 0.2 * 200


def test_a_flood_of_proposals_does_not_grow_what_is_in_sight():
    tasks = informative(*[[proposal(f"f{n}_{i}") for i in range(100)] for n in range(30)])
    for _ in range(30):
        tasks.draw(1)
    assert len(tasks.state_dict()["stock"]) == MAX_STOCK
