"""What tests of judging share: workers that are not processes, and what an evaluator puts before a judge."""

import math
from collections import defaultdict
from concurrent.futures import Future
from unittest.mock import patch

from codezero.config import EvaluatorConfig, RewardConfig
from codezero.evaluate.dryrun import dry_run
from codezero.evaluate.evaluator import FrozenEvaluator
from codezero.evaluate.judge import Opinion
from codezero.evaluate.reading import AttemptReader
from codezero.jobs import JOBS
from codezero.workers import Cause, Death
from tests.builders import group, rollout


class Reader:
    """Stands in for `Workers`: does their jobs in this process, with what `results` gives for a dry run's results."""

    def __init__(self, results=None):
        self.dry_run = dry_run if results is None else lambda code, suite, budget: results(code, suite)

    def submit(self, job, request, cpu_s, *, fresh=False):
        answer = Future()
        with patch("codezero.evaluate.read_attempts.dry_run", self.dry_run):
            answer.set_result(JOBS[job](request))
        return answer

    def ask(self, job, request, cpu_s):
        return self.submit(job, request, cpu_s).result()


class Mortal(Reader):
    """Workers that a job with written cases ends, or every job."""

    def __init__(self, cause=Cause.SIGNAL, *, every=False):
        super().__init__()
        self.death, self.every = Death(cause), every

    def ask(self, job, request, cpu_s):
        return self.death if self.every or getattr(request, "cases", ()) else super().ask(job, request, cpu_s)


def evaluator(judge, workers, dry_run=True, num_external=math.inf, at_once=1, reading=None, **settings):
    """The evaluator of a round; `workers` may be a `Reader`, and `reading` has more for an `AttemptReader`."""
    config = EvaluatorConfig(dry_run=dry_run, **settings)
    attempt_reader = AttemptReader(
        workers, dry_run=dry_run, fatal_rules=config.fatal_rules, show=True, **(reading or {})
    )
    return FrozenEvaluator(judge, config, RewardConfig(), lambda *_: None, attempt_reader, num_external, at_once)


def scored(evaluator, group, external=False):
    (found,) = evaluator.score_groups([(group, external)])
    return found


class ScriptedJudge:
    """Answers from a table by a program's code, or all with one probability; raises an exception."""

    def __init__(self, answers):
        self.answers = answers if isinstance(answers, dict | Exception) else defaultdict(lambda: answers)
        self.asked = []

    def judge(self, solutions):
        self.asked += [solution.code for solution in solutions]
        if isinstance(self.answers, Exception):
            raise self.answers
        return [Opinion(p_correct=self.answers[solution.code]) for solution in solutions]


class _Catcher:
    def judge(self, solutions):
        self.caught = solutions
        return [Opinion(p_correct=0.5)] * len(solutions)


def submission(task, code):
    """What a judge is asked about a solution."""
    judge = _Catcher()
    one = group([rollout(text=f"```python\n{code}\n```")], of=task)
    scored(evaluator(judge, Reader(), dry_run=False, fatal_rules=False), one)
    (caught,) = judge.caught
    return caught
