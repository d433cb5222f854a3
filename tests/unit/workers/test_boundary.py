"""One rule: no parser, scorer or environment sees a stranger's text in the node's process, and none that executes
what it reads sees it anywhere."""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import codezero

PACKAGE = Path(codezero.__file__).parent
READERS = (
    *("codezero.jobs", "codezero.evaluate.dryrun", "codezero.evaluate.copies", "codezero.evaluate.read_attempts"),
    "codezero.evaluate.fresh",
    *("codezero.evaluate.normalise", "codezero.evaluate.rules.check", "codezero.evaluate.rules.solution"),
    *("codezero.evaluate.shown", "codezero.proposer.checks", "codezero.tasks.assertions"),
    *("codezero.proposer.reference_tests", "codezero.verifier.trial", "pyflakes"),
)
"""What parses or follows it, all of it in worker processes."""
THAT_EXECUTE = {"reasoning_gym", "sympy", "numexpr", "pandas", "asteval", "simpleeval"}
"""Others' libraries that reach `eval` with what they are given."""

NODE = """
import resource, sys, threading

import codezero.cli, codezero.node, codezero.proposer.node, codezero.evaluate.score_file
from codezero.config import EvaluatorConfig, Reference
from codezero.proposer import jobs
from codezero.proposer.reference import ReferenceCheck
from codezero.evaluate.evaluator import FrozenEvaluator
from codezero.evaluate.reading import AttemptReader
from codezero.config import RewardConfig
from codezero.types import FinishReason, Rollout, RolloutGroup, Task, TaskOrigin
from codezero.workers import Workers

limits, seen = {sys.getrecursionlimit()}, threading.Event()

def watch():
    while not seen.wait(0.001):
        limits.add(sys.getrecursionlimit())

threading.Thread(target=watch).start()
with Workers(1) as workers:
    task = Task(origin=TaskOrigin.MBPP, question="Add one to x.", tests="assert f(1) == 2")
    texts = ["def f(x):\\n    return x + 1", "def f(x):\\n    return f(x)", "def f(x: 'int'):\\n    return y"]
    rollouts = tuple(Rollout(text=f"```python\\n{text}\\n```", finish=FinishReason.STOP) for text in texts)
    group = RolloutGroup(peer_id="p", model_id="m", policy_version=0, task=task, rollouts=rollouts)
    attempt_reader = AttemptReader(workers, dry_run=True, fatal_rules=True, show=True)
    evaluator = FrozenEvaluator(None, EvaluatorConfig(), RewardConfig(), lambda *_: None, attempt_reader)
    (scored,) = evaluator.score_groups([(group, True)])
    assert [verdict.p_correct for verdict in scored.verdicts] == [0.99, 0.01, 0.01], scored
    question = "Write a function f(x) that returns one more than the whole number x."
    assert jobs.why_not(workers, question, "assert f(1) == 2\\nassert f(2) == 3") is None
    tests = "assert f(1) == {}\\nassert f(2) == 3"
    confirmed = ReferenceCheck(Reference.dry_run, workers).confirm_or_correct_tests(texts[0], tests.format(5))
    assert confirmed == (tests.format(2), None)
seen.set()
print(*sorted(name for name in READERS if name in sys.modules), *limits)
"""


def test_a_node_that_has_judged_a_round_and_checked_a_problem_has_read_nothing_itself():
    """Nor has it raised its recursion limit, which holds for all of its threads."""
    code = f"READERS = {READERS!r}\n{textwrap.dedent(NODE)}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.returncode) == ("1000\n", 0), done.stderr[-2000:]


def imports_of(path):
    """Modules and, of `from` imports, the names taken from them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_only_what_runs_in_workers_imports_a_parser():
    """The test above says that no module of a node has imported one; this, that no function of one can."""
    readers = {PACKAGE / f"{name.split('.', 1)[1].replace('.', '/')}.py" for name in READERS if "." in name}
    for folder in ("dryrun", "fresh", "rules"):
        readers |= set((PACKAGE / "evaluate" / folder).glob("*.py"))
    parsers = (*READERS, "regex", *(f"codezero.tasks.testcases.{name}" for name in ("parse_tests", "parse_source")))
    found = {
        (str(path.relative_to(PACKAGE)), name)
        for path in set(PACKAGE.rglob("*.py")) - readers
        for name in imports_of(path)
        if any(name == parser or name.startswith(f"{parser}.") for parser in parsers)
    }
    assert found == set()


def test_what_would_execute_a_strangers_text_is_imported_nowhere():
    """But by the environment that has reasoning-gym make questions, whose function is given a seed only."""
    maker = PACKAGE / "tasks" / "reasoning_gym.py"
    found = {name.split(".")[0] for path in set(PACKAGE.rglob("*.py")) - {maker} for name in imports_of(path)}
    assert not found & THAT_EXECUTE
    (making,) = [
        one
        for one in ast.walk(ast.parse(maker.read_text()))
        if isinstance(one, ast.FunctionDef) and "import reasoning_gym" in ast.unparse(one)
    ]
    assert ast.unparse(making.args) == "seed: int"
    assert set(imports_of(maker)) & THAT_EXECUTE == {"reasoning_gym"}
