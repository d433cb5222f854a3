"""Ranks of solutions, where the model's own cases end the worker that tries them."""

from types import SimpleNamespace

from codezero.harness import best
from codezero.harness.problems import BenchProblem
from codezero.types import FinishReason, Rollout
from codezero.verifier.write import CaseAnswer
from tests.builders import task
from tests.strangers import Mortal


def test_cases_that_end_the_worker_count_as_none(monkeypatch):
    answer = CaseAnswer(cases=("assert f(2) == 3",))
    monkeypatch.setattr(best, "write_cases", lambda writer, subjects, num, **_: [[answer] * num])
    problem = BenchProblem(name="1", task=task(tests="assert f(1) == 2"))
    codes = ("def f(x): return x + 1", "def f(x): return 0", "def f(x): return x + 1")
    answers = [Rollout(text=f"```python\n{code}\n```", finish=FinishReason.STOP) for code in codes]
    writer = SimpleNamespace(model=SimpleNamespace(device="cpu"))
    (ranked,) = best.rank_solutions([(problem, answers)], Mortal(), writer, seed=1, temperature=1.0)
    assert [one.ranks["shown"] for one in ranked] == [1.0, 1.0, 1.0]
    assert [one.ranks["majority"] for one in ranked] == [3.0, 2.0, 3.0]
    assert [one.ranks["tests"] for one in ranked] == [1.0, 1.0, 1.0]
