"""Solves with rollout servers while the node judges and learns: tasks of the next rounds are drawn and begun early.

node       begin n+1 ─► finish n ─► exchange, score, learn n ─► begin n+2 ─► finish n+1 ─► ...
servers    └─ sample n+1, with the weights before update n ──────────────┘
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from codezero.llm.load import LoadedModel
from codezero.policy.solver import PolicySolver
from codezero.ports import TaskSource
from codezero.rollouts.engine import RemoteEngine
from codezero.rollouts.job import RolloutJob
from codezero.types import RolloutGroup, ScoredGroup, Task

KEPT_VERSIONS = 64
"""The number of latest versions of the weights whose names are remembered."""


@dataclass(frozen=True, slots=True)
class _Begun:
    """A round's tasks, those of them whose prompts fit, and their rollouts under way."""

    tasks: tuple[Task, ...]
    fitting: Sequence[Task]
    job: RolloutJob


class AheadSolver:
    """The tasks and the solver of a node with rollout servers.

    Tasks that were drawn ahead of a stop are not solved after it: others take their place.
    """

    def __init__(
        self,
        tasks: TaskSource,
        solver: PolicySolver,
        policy: LoadedModel,
        engine: RemoteEngine,
        max_staleness: int,
        policy_lock: AbstractContextManager[object],
    ) -> None:
        """`policy_lock` is held while something is computed or copied on the policy's device."""
        self._tasks, self._solver, self._policy, self._engine = tasks, solver, policy, engine
        self._rounds, self._policy_lock = max_staleness + 1, policy_lock
        self._begun: deque[_Begun] = deque()
        self._newest = ""
        """The name of the weights that `draw` has found last."""
        self._versions: dict[str, int] = {}
        """The policy version of the weights by their names."""

    def draw(self, num_tasks: int) -> tuple[Task, ...]:
        """Returns the tasks whose rollouts are to be finished next. Begins those of as many rounds as may be under
        way, with the weights of now. Raises TaskError, RolloutError."""
        with self._policy_lock:
            self._newest = self._engine.publish(self._policy.model)
        while len(self._begun) < self._rounds:
            tasks = self._tasks.draw(num_tasks)
            fitting = self._solver.fitting(tasks)
            with self._policy_lock:
                job = self._engine.begin(self._solver.request([ids for _, ids in fitting]))
            self._begun.append(_Begun(tasks, [task for task, _ in fitting], job))
        return self._begun[0].tasks

    def solve(self, tasks: Sequence[Task], policy_version: int) -> tuple[RolloutGroup, ...]:
        """Waits for the rollouts of the tasks drawn last, and returns one group per task, in order, with the version of
        the weights that it is from."""
        self._versions[self._newest] = policy_version
        for name in list(self._versions)[:-KEPT_VERSIONS]:
            del self._versions[name]
        begun = self._begun.popleft()
        found = self._engine.finish(begun.job, self._policy.model)
        return tuple(
            self._solver.group(task, attempts, self._versions[name])
            for task, (attempts, name) in zip(begun.fitting, found, strict=True)
        )

    def note(self, groups: Sequence[ScoredGroup]) -> None:
        self._tasks.note(groups)

    def take_skipped(self) -> Mapping[str, int]:
        """Returns the numbers of rows and tasks left out since the last call, by reason."""
        return Counter(self._tasks.take_skipped()) + Counter(self._solver.take_skipped())
