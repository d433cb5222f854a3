import ast
import subprocess
import sys

import pytest

from codezero.errors import TaskError
from codezero.proposals import LEVELS
from codezero.tasks.problems import load_problems

PROBLEMS = load_problems()


def run(source: str, tmp_path) -> subprocess.CompletedProcess:
    """Runs our own shipped code in a fresh interpreter, for 60 s at most."""
    return subprocess.run(
        [sys.executable, "-I", "-c", source], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )


def runner(bodies) -> str:
    """One program for all problems that prints the names whose tests fail; a problem sees only its own names."""
    return f"""
failed = []
for name, source in {bodies!r}:
    try:
        exec(compile(source, name, "exec"), {{"__name__": name}})
    except BaseException as error:
        failed.append(name)
print(failed)
"""


def test_every_reference_solution_passes_its_tests(tmp_path):
    bodies = [(p.task.task_id, p.reference + "\n" + p.task.tests) for p in PROBLEMS]
    assert run(runner(bodies), tmp_path).stdout == "[]\n"


@pytest.mark.parametrize("answer", ["None", "0", "[]", "args[0] if args else None", "True"])
def test_stub_answers_fail(answer, tmp_path):
    bodies = []
    for problem in PROBLEMS:
        names = [
            node.name for node in ast.parse(problem.reference).body if isinstance(node, ast.FunctionDef | ast.ClassDef)
        ]
        stubs = "\n".join(f"def {name}(*args, **kwargs): return {answer}" for name in names)
        bodies.append((problem.task.task_id, stubs + "\n" + problem.task.tests))
    assert run(runner(bodies), tmp_path).stdout == f"{[problem.task.task_id for problem in PROBLEMS]}\n"


def test_there_are_enough_problems_on_every_level():
    per_level = [sum(p.task.difficulty == level for p in PROBLEMS) for level in range(1, len(LEVELS) + 1)]
    assert len(PROBLEMS) >= 60
    assert min(per_level) >= 12


def test_questions_are_unique():
    assert len({p.task.task_id for p in PROBLEMS}) == len(PROBLEMS)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.task.question[:40])
def test_tests_are_one_line_asserts_on_a_name_the_question_gives(problem):
    lines = problem.task.tests.splitlines()
    parsed = ast.parse(problem.task.tests).body
    assert len(parsed) == len(lines) >= 2
    assert all(isinstance(node, ast.Assert) for node in parsed)
    defined = {n.name for n in ast.parse(problem.reference).body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    used = {node.id for node in ast.walk(ast.parse(problem.task.tests)) if isinstance(node, ast.Name)}
    assert defined & used
    assert all(name in problem.task.question for name in defined & used)


def test_question_does_not_carry_the_solution():
    assert not [p.task.task_id for p in PROBLEMS if p.reference.strip() in p.task.question]


@pytest.mark.parametrize(
    "text", ["", "[]", "7", "- {name: a}", "- [", "- {name: a, question: b, tests: 3, solution: d}"]
)
def test_damaged_file_says_to_install_again(tmp_path, text):
    (tmp_path / "1_beginner.yaml").write_text(text)
    with pytest.raises(TaskError, match=r"1_beginner.yaml.*install codezero again"):
        load_problems(1, 1, folder=tmp_path)
    with pytest.raises(TaskError, match=r"2_easy.yaml.*install codezero again"):
        load_problems(2, 2, folder=tmp_path)
