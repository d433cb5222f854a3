"""The tasks of peers that cannot be a peer's invention, because this node could draw them itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from codezero.config import PeerTasks, TasksConfig
from codezero.tasks.listed import HubTaskIds
from codezero.tasks.proposed import WithProposals
from codezero.tasks.withheld import Withheld, id_of
from codezero.types import Task

UNKNOWN, UNLISTED, UNKNOWN_ENVIRONMENT = "unknown_task", "unlisted_task", "unknown_environment"
"""The names in reports of the reasons to drop a group for its task."""


class WantedTasks:
    """Tells which tasks of peers are trained on (`swarm.tasks`). Held-out ones never are.

    With `swarm.tasks=known` these are the problems that the node has at hand (the built-in ones of all levels, those of
    its files, and what it has drawn from streams), those that `lists` have, and the proposals that `tasks` took up. No
    task of an environment is known: it is made from a seed, which a peer does not send, so its answer may be false.
    """

    def __init__(
        self,
        setting: PeerTasks,
        withheld: Withheld,
        tasks: WithProposals,
        lists: Sequence[HubTaskIds] = (),
        held_out: Iterable[Task] = (),
        environments: Collection[str] = (),
    ) -> None:
        """`environments` are the names of those that are loaded."""
        self._takes_any = setting is PeerTasks.any
        self._withheld, self._tasks, self._lists = withheld, tasks, lists
        self._held_out = frozenset(map(id_of, held_out))
        self._environments = {"", *environments}

    def why_not(self, task: Task) -> str | None:
        """Returns the reason not to train on a peer's task, None if it is wanted. It is `UNLISTED` if the peer says
        that the task is of a dataset whose list is not complete."""
        if task.environment not in self._environments:
            return UNKNOWN_ENVIRONMENT
        name = id_of(task)
        if name in self._held_out:
            return UNKNOWN
        if self._takes_any:
            return None
        if task.environment:
            return UNKNOWN
        at_hand = self._withheld.has(name) or name in self._tasks.taken_up
        if at_hand or any(name in one for one in self._lists):
            return None
        is_early = any(one.name == task.origin.value and not one.is_complete for one in self._lists)
        return UNLISTED if is_early else UNKNOWN

    def progress(self) -> str:
        """Returns how many tasks of each dataset are listed, as text; empty if no dataset has to be."""
        words = [f"{one.name} {len(one):,}{'' if one.is_complete else ' so far'}" for one in self._lists]
        return f"listed: {', '.join(words)}" if words else ""


def rule(setting: PeerTasks, tasks: TasksConfig) -> str:
    """Returns in a sentence which tasks of peers a node with these settings trains on."""
    if setting is PeerTasks.any:
        return "any, also those whose tests reward wrong answers (swarm.tasks=any; known is safe from these)"
    datasets = [name for name in ("mbpp", "code_contests") if getattr(tasks, name).weight > 0]
    proposals = ["proposals that it has checked"] if tasks.proposals.share > 0 else []
    *first, last = ["built-in problems", *datasets, *proposals]
    known = f"{', '.join(first)} and {last}" if first else last
    none = f"; none of {', '.join(tasks.environments)}, which cannot be checked" if tasks.modules else ""
    return f"only those that this node knows itself, with their tests: {known}{none} (swarm.tasks=known)"
