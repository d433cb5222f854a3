"""Builds the mixture that a configuration asks for."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from codezero.config import DatasetConfig, TaskDraw, TasksConfig
from codezero.errors import TaskError
from codezero.prompts import solver as prompt
from codezero.tasks import code_contests, mbpp
from codezero.tasks.candidates import Informative
from codezero.tasks.environment import environment_source, load_environments
from codezero.tasks.held_out import load_held_out
from codezero.tasks.hub import HubUnreachable, check_reachable, open_dataset, revision_of
from codezero.tasks.listed import HubTaskIds
from codezero.tasks.mixture import Mixture, Source
from codezero.tasks.problems import load_problems
from codezero.tasks.rows import BadRow, read_rows
from codezero.tasks.sources import ListSource, StreamSource
from codezero.tasks.withheld import Problem, Withheld
from codezero.types import Task, TaskOrigin

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dataset:
    """The differences between the two datasets."""

    name: str
    hub_id: str
    columns: Callable[[TasksConfig], tuple[str, ...]]
    """The columns that are read."""
    splits: Collection[str]
    to_problem: Callable[[object, TasksConfig], Problem]
    split_of: Callable[[object], str | None] | None
    """Returns a row's split where a file may hold several, None for a row of each; None where a file holds one."""


_MBPP = _Dataset(
    name=TaskOrigin.MBPP.value,
    hub_id=mbpp.HUB_ID,
    columns=lambda config: mbpp.COLUMNS,
    splits=mbpp.SPLITS,
    to_problem=lambda row, config: mbpp.to_problem(row, config.show_all_tests),
    split_of=mbpp.split_of,
)
_CODE_CONTESTS = _Dataset(
    name=TaskOrigin.CODE_CONTESTS.value,
    hub_id=code_contests.HUB_ID,
    columns=lambda config: code_contests.COLUMNS + code_contests.HIDDEN_TESTS * config.hidden_tests,
    splits=code_contests.SPLITS,
    to_problem=lambda row, config: code_contests.to_problem(row, config.hidden_tests),
    split_of=None,
)


def make_task_source(config: TasksConfig, seed: int) -> Mixture:
    """Returns the mixture of all sources with a weight above 0.

    Local files are read whole; the hub is asked only if a dataset without a path has a weight. If it does not provide a
    dataset, the built-in problems take over its share (`fallback`) and one warning says so.

    Raises TaskError if a file is missing, unreadable or without a usable row, a split is unknown, or an
    environment cannot be loaded; HubUnreachable if there is neither hub nor fallback.
    """
    skipped: Counter[str] = Counter()
    withheld = Withheld(load_problems())
    wanted = _wanted(config)
    for dataset, settings in wanted:
        if settings.split not in dataset.splits:
            raise TaskError(
                f"tasks.{dataset.name}.split={settings.split} does not exist: use one of {', '.join(dataset.splits)}"
            )
    # Asked once for both, so that a hub which does not answer is waited for only once.
    no_hub = _hub_trouble() if any(settings.path is None for _, settings in wanted) else None

    def drawn(source: ListSource | StreamSource) -> Source:
        return Informative(source, seed, withheld) if config.draw is TaskDraw.informative else source

    environments = load_environments(config.environments).items()
    shares = [(drawn(environment_source(name, one, seed, skipped)), 1.0) for name, one in environments]
    lost: dict[str, HubUnreachable] = {}
    builtin_weight = config.builtin.weight
    for dataset, settings in wanted:
        try:
            source = _source(dataset, settings, config, seed, skipped, withheld, no_hub)
            shares.append((drawn(source), settings.weight))
        except HubUnreachable as error:
            lost[dataset.name] = error
            builtin_weight += settings.weight
    if lost:
        _report_lost(lost, config.fallback)

    streaming = any(settings.path is None and dataset.name not in lost for dataset, settings in wanted)
    fallback = None
    if builtin_weight > 0 or (streaming and config.fallback):
        builtin = drawn(_builtin_source(config, seed))
        shares.append((builtin, builtin_weight))
        fallback = builtin if config.fallback else None
    return Mixture(shares, seed, skipped, withheld, fallback)


def local_questions(config: TasksConfig) -> Iterator[str]:
    """Yields the questions of the problems on this machine, without their tests: the built-in ones, those that nodes
    measure themselves on, and those of files with a weight.

    Raises TaskError if a file is missing or unreadable, or has no usable row.
    """
    tasks = [*(problem.task for problem in load_problems()), *load_held_out().values()]
    for dataset, settings in _wanted(config):
        if settings.path is not None:
            tasks += [problem.task for problem in _problems_of_file(dataset, settings, config, Counter())]
    for task in tasks:
        yield prompt.without_tests(task.question, task.tests)


def task_lists(config: TasksConfig, folder: Path) -> list[HubTaskIds]:
    """Returns the lists of the tasks of all datasets that are streamed from the hub, as far as the folder has them."""
    found = []
    for dataset, settings in _wanted(config):
        if settings.path is None:
            what = f"{dataset.hub_id} split {settings.split}"
            if config.hidden_tests and dataset is _CODE_CONTESTS:
                what += " with one answer"
            tasks = partial(_tasks_to_list, dataset, settings.split, config)
            path = folder / f"tasks-{dataset.name}.msgpack"
            found.append(HubTaskIds(dataset.name, what, path, partial(revision_of, dataset.hub_id), tasks))
    return found


def _wanted(config: TasksConfig) -> list[tuple[_Dataset, DatasetConfig]]:
    """Returns the datasets with a weight above 0, and their settings."""
    datasets = [(_MBPP, config.mbpp), (_CODE_CONTESTS, config.code_contests)]
    return [(dataset, settings) for dataset, settings in datasets if settings.weight > 0]


def _tasks_to_list(dataset: _Dataset, split: str, config: TasksConfig, revision: str) -> Iterator[Task]:
    """Yields the tasks of a dataset on the hub, made without hidden tests. Raises HubUnreachable."""
    columns = dataset.columns(replace(config, hidden_tests=False))
    for row in open_dataset(dataset.hub_id, split, columns, 0, revision)(0):
        with suppress(BadRow):  # counted when it is drawn
            yield dataset.to_problem(row, config).task


def _hub_trouble() -> HubUnreachable | None:
    try:
        check_reachable()
    except HubUnreachable as error:
        return error
    return None


def _report_lost(lost: dict[str, HubUnreachable], fallback: bool) -> None:
    """Logs one warning that the built-in problems stand in. Raises HubUnreachable if they may not (`fallback`)."""
    reasons = "; ".join(dict.fromkeys(str(error) for error in lost.values()))
    names = " and ".join(lost)
    paths = " ".join(f"tasks.{name}.path=FILE" for name in lost)
    if not fallback:
        raise HubUnreachable(f"{names} cannot be loaded from the hub: {reasons}. Give {paths}, or tasks=builtin")
    logger.warning(
        "%s cannot be loaded from the hub: %s. Drawing built-in problems instead, until the next start; give %s to "
        "draw from a file",
        names,
        reasons,
        paths,
    )


def _source(
    dataset: _Dataset,
    settings: DatasetConfig,
    config: TasksConfig,
    seed: int,
    skipped: Counter[str],
    withheld: Withheld,
    no_hub: HubUnreachable | None,
) -> ListSource | StreamSource:
    if settings.path is not None:
        problems = _problems_of_file(dataset, settings, config, skipped)
        for problem in problems:
            withheld.keep(problem)
        return ListSource(dataset.name, [problem.task for problem in problems], seed)
    if no_hub is not None:
        raise no_hub

    def to_task(row: object) -> Task:
        problem = dataset.to_problem(row, config)
        withheld.keep_drawn(problem)
        return problem.task

    rows_of_epoch = open_dataset(dataset.hub_id, settings.split, dataset.columns(config), seed)
    return StreamSource(dataset.name, f"{dataset.hub_id} split {settings.split}", rows_of_epoch, to_task, skipped)


def _problems_of_file(
    dataset: _Dataset, settings: DatasetConfig, config: TasksConfig, skipped: Counter[str]
) -> list[Problem]:
    """Returns the problems of one split, each once. Raises TaskError if there is none, or as read_rows does."""
    assert settings.path is not None
    path = Path(settings.path).expanduser()
    problems: dict[str, Problem] = {}
    reasons: Counter[str] = Counter()
    for row in read_rows(path, dataset.columns(config)):
        try:
            if isinstance(row, BadRow):
                raise row
            if dataset.split_of is not None and dataset.split_of(row) not in (None, settings.split):
                continue
            problem = dataset.to_problem(row, config)
            if problem.task.task_id in problems:
                raise BadRow("row repeats an earlier question")
        except BadRow as reason:
            reasons[f"{dataset.name}: {reason}"] += 1
        else:
            problems[problem.task.task_id] = problem
    if not problems:
        why = ", ".join(f"{count} x {reason}" for reason, count in reasons.most_common(3)) or "none in this split"
        raise TaskError(
            f"{path} has no usable row for split {settings.split} ({why}): give a file with the rows of "
            f"{dataset.hub_id}"
        )
    skipped.update(reasons)
    return list(problems.values())


def _builtin_source(config: TasksConfig, seed: int) -> ListSource:
    problems = load_problems(config.builtin.min_difficulty, config.builtin.max_difficulty)
    return ListSource(TaskOrigin.BUILTIN.value, [problem.task for problem in problems], seed)
