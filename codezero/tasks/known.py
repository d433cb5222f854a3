"""The tasks of peers that cannot be a peer's invention, because this node could draw them itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

from codezero.config import PeerTasks
from codezero.tasks.mixture import Mixture
from codezero.tasks.problems import load_problems
from codezero.tasks.proposed import WithProposals
from codezero.tasks.withheld import id_of
from codezero.types import Task


def which_are_known(
    setting: PeerTasks, sources: Mixture, tasks: WithProposals, held_out: Iterable[Task] = ()
) -> Callable[[Task], bool]:
    """Returns a function that tells whether a peer's task is wanted (`swarm.tasks`); held-out tasks never are.

    With `swarm.tasks=known` the wanted tasks are the built-in problems of all levels, all tasks of `sources`, and the
    proposals that `tasks` took up. To list them, datasets on the hub are read once from end to end.
    """
    unwanted = frozenset(map(id_of, held_out))
    if setting is PeerTasks.any:
        return lambda task: id_of(task) not in unwanted
    builtin = (problem.task for problem in load_problems())
    known = frozenset(id_of(task) for task in chain(builtin, sources.all_tasks()))

    def is_known(task: Task) -> bool:
        found = id_of(task)
        return found not in unwanted and (found in known or found in tasks.taken_up)

    return is_known
