"""Solving ahead with rollout servers: which tasks are drawn when, and from which weights their solutions are."""

from collections import Counter
from contextlib import closing
from threading import Lock

import pytest
import torch

from codezero.config import Transfer
from codezero.llm.draw import SamplingParams
from codezero.llm.sample import sample_groups
from codezero.policy.ahead import AheadSolver
from codezero.policy.solver import PolicySolver
from codezero.rollouts.engine import RemoteEngine
from codezero.rollouts.snapshots import Snapshots
from tests.builders import loaded, task
from tests.rollout_servers import rollout_server


class Tasks:
    """Numbered tasks; those in `long` have prompts that do not fit."""

    def __init__(self, long=()):
        self.num_drawn, self.noted, self._long = 0, [], long

    def draw(self, num_tasks):
        numbers = range(self.num_drawn, self.num_drawn + num_tasks)
        self.num_drawn += num_tasks
        return tuple(task(f"task {number}" + "?" * (3000 * (number in self._long))) for number in numbers)

    def note(self, groups):
        self.noted += groups

    def take_skipped(self):
        return {"rows": 1}


class Held(Snapshots):
    """Snapshots that are taken while the lock is held."""

    def __init__(self, turn, *arguments):
        super().__init__(*arguments)
        self._turn = turn

    def take(self, *arguments):
        assert self._turn.locked()
        return super().take(*arguments)


class Node:
    def __init__(self, server, folder, max_staleness, tasks):
        self.policy, self.tasks, self.version, self.steps = loaded(), tasks, 0, []
        solver = PolicySolver(
            self.policy,
            2,
            SamplingParams(max_new_tokens=4),
            seed=1,
            peer_id="us",
            progress=lambda *step: self.steps.append(step),
            sample=sample_groups,
        )
        turn = Lock()
        self.engine = RemoteEngine([server], Held(turn, self.policy.model, folder, Transfer.auto))
        self.ahead = AheadSolver(self.tasks, solver, self.policy, self.engine, max_staleness, turn)

    def round(self):
        """The questions of a round's groups, and the versions of their weights; then an update."""
        drawn = self.ahead.draw(2)
        groups = self.ahead.solve(drawn, self.version)
        assert all(len(group.rollouts) == 2 and group.peer_id == "us" for group in groups)
        self.update()
        return [group.task.question[:6] for group in groups], {group.policy_version for group in groups}

    def update(self):
        with torch.no_grad():
            self.policy.model.lm_head.weight.mul_(1.01)
        self.version += 1


@pytest.fixture
def node(tmp_path):
    made = []

    def make(max_staleness, long=()):
        made.append(Node(server, tmp_path / "weights", max_staleness, Tasks(long)))
        return made[-1]

    with rollout_server() as server:
        yield make
        for one in made:
            one.engine.close()


def test_each_round_is_begun_with_the_weights_of_the_round_before(node):
    made = node(1)
    found = []
    for rounds_begun in (2, 3, 4, 5):
        found.append(made.round())
        assert made.tasks.num_drawn == 2 * rounds_begun
    assert [tasks for tasks, _ in found] == [[f"task {2 * i}", f"task {2 * i + 1}"] for i in range(4)]
    for version, (_, versions) in enumerate(found):
        assert versions <= {max(0, version - 1), version}  # the present ones where a busy server began late


@pytest.mark.parametrize("most", [0, 3])
def test_solutions_are_at_most_as_stale_as_allowed(node, most):
    made = node(most)
    for version in range(6):
        _, versions = made.round()
        assert max(0, version - most) <= min(versions) <= max(versions) <= version
        assert made.tasks.num_drawn == 2 * (version + most + 1)


def test_tasks_whose_prompts_are_too_long_are_left_out_and_counted(node):
    made = node(1, long=(1, 2, 3))
    assert made.round()[0] == ["task 0"]
    assert made.round() == ([], set())
    assert made.round()[0] == ["task 4", "task 5"]
    assert made.ahead.take_skipped() == Counter(rows=1, prompt_too_long=3)


def test_without_its_server_a_node_solves_with_its_present_weights(tmp_path):
    with rollout_server() as server:
        made = Node(server, tmp_path, 1, Tasks())
        assert made.round()[1] == {0}
        assert made.round()[1] <= {0, 1}
    with closing(made.engine):
        assert made.round()[1] <= {1, 2}  # perhaps there in time
        for version in (3, 4):
            assert made.round()[1] == {version}
    assert any(stage == "solve" for stage, _, _ in made.steps)


def test_results_reach_the_tasks(node):
    made = node(1)
    made.ahead.note(["a group"])
    assert made.tasks.noted == ["a group"]
