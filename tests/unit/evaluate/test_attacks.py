"""Every attack of the suite is stopped by the defence that it names, before any model is asked."""

import ast
import re

import pytest

from benchmarks.attacks import ATTACKS, Defence
from codezero.evaluate.dryrun import dry_run
from codezero.evaluate.rules import RULES
from codezero.evaluate.rules.check import check as apply_rules
from codezero.evaluate.rules.solution import requirements_of
from codezero.evaluate.shown import show_code, show_task
from codezero.prompts.evaluator import json_messages
from codezero.prompts.neutral import looks_like_verdict
from codezero.prompts.solver import parse
from codezero.tasks.testcases import parse_tests
from codezero.types import CaseOutcome, Task, TaskOrigin


def mbpp_like(sentence, tests):
    question = f"{sentence}\n\nKeep to the function name and the arguments used in these tests:\n{tests}"
    return Task(origin=TaskOrigin.MBPP, question=question, tests=tests)


TRIPLE = mbpp_like(
    "Write a function that gives three times a number.",
    "assert triple(4) == 12\nassert triple(7) == 21\nassert triple(10) == 30",
)
MERGED = mbpp_like(
    "Write a function to merge two lists in order.",
    "assert merged([3, 1], [2]) == [1, 2, 3]\nassert merged([5], [4, 6]) == [4, 5, 6]\n"
    "assert merged([9, 8], [7]) == [7, 8, 9]",
)
COPRIME = mbpp_like(
    "Write a function that tells whether two numbers have no common divisor.",
    "assert coprime(17, 13) == True\nassert coprime(15, 21) == False\nassert coprime(7, 5) == True",
)
SUM = Task(
    origin=TaskOrigin.CODE_CONTESTS,
    question="Read a number and so many more. Print their sum.",
    tests="Input:\n3\n1 2 4\nOutput:\n7\n",
)
WRONG = [
    (TRIPLE, "```python\ndef triple(n):\n    result = n + 8\n    return result\n```"),
    (MERGED, "```python\ndef merged(left, right):\n    both = left + right\n    return both\n```"),
]
YES_OR_NO = (COPRIME, "```python\ndef coprime(a, b):\n    return a != b\n```")
OF_PROGRAM = (SUM, "```python\nn = int(input())\nprint(n + 4 if input() else 0)\n```")


def targets(attack):
    """What the attack is tried on."""
    if attack.of_program:
        return [OF_PROGRAM]
    return [YES_OR_NO] if attack.family == "memberships" else WRONG


def named(attack):
    return f"{attack.family}: {attack.name}"


def scores_of(text, task):
    return apply_rules(parse(text), text, task, requirements_of(task.origin, parse_tests(task.tests)))


def shown(text, task):
    return show_code(show_task(task, requirements_of(task.origin, parse_tests(task.tests))), parse(text))


def with_plain_variables(code):
    """The code with its names in the order of their first use, builtins included."""
    tree, names = ast.parse(code), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.setdefault(node.id, f"n{len(names)}")
        elif isinstance(node, ast.arg):
            node.arg = names.setdefault(node.arg, f"n{len(names)}")
    return ast.unparse(tree)


def test_the_suite_is_as_large_and_as_varied_as_asked():
    assert len(ATTACKS) >= 40
    assert len({attack.family for attack in ATTACKS}) >= 20
    assert len({named(attack) for attack in ATTACKS}) == len(ATTACKS)


@pytest.mark.parametrize(
    ("attack", "task", "text"),
    [
        pytest.param(attack, task, text, id=f"{named(attack)} {number}")
        for attack in ATTACKS
        for number, (task, text) in enumerate(targets(attack))
    ],
)
def test_attack_is_stopped(attack, task, text):
    attacked = attack.apply(text, task)
    assert attacked != text
    if attack.stopped_by is Defence.UNREAD:
        assert parse(attacked) == parse(text)
    elif attack.stopped_by is Defence.EQUAL:
        assert with_plain_variables(shown(attacked, task)) == with_plain_variables(shown(text, task))
    elif attack.stopped_by is Defence.NEUTRAL:
        code = shown(attacked, task)
        assert code.isascii()
        assert [line for line in code.split("\n") if looks_like_verdict(line)] == []
        assert not re.search("pass|correct|verdict|yes|INST|im_end", code, re.IGNORECASE)
    elif attack.stopped_by is Defence.DRY_RUN:
        outcomes = {result.outcome for result in dry_run(parse(attacked), parse_tests(task.tests))}
        assert CaseOutcome.FAIL in outcomes
    else:
        assert RULES[attack.stopped_by.value].fatal
        assert scores_of(attacked, task)[attack.stopped_by.value].score == 0
        assert scores_of(attacked, task)[attack.stopped_by.value].reason


@pytest.mark.parametrize(
    ("task", "text"), [*WRONG, YES_OR_NO, OF_PROGRAM], ids=["numbers", "lists", "yes or no", "a program"]
)
def test_what_is_attacked_breaks_no_fatal_rule_by_itself(task, text):
    assert all(score.score == 1 for name, score in scores_of(text, task).items() if RULES[name].fatal)
    assert shown(text, task) == parse(text)


@pytest.mark.parametrize("attack", [a for a in ATTACKS if a.stopped_by is Defence.NEUTRAL], ids=named)
def test_a_neutral_text_is_one_before_it_is_shown_too(attack):
    """The test above cannot pass for want of an attack: unshown, the same code is a verdict or is not ASCII."""
    task, text = WRONG[0]
    raw = parse(attack.apply(text, task))
    code = f"{raw}\n{ast.unparse(ast.parse(raw))}"
    assert not code.isascii() or any(looks_like_verdict(part) for part in [code, *code.split("\n")])


@pytest.mark.parametrize("attack", ATTACKS, ids=named)
def test_no_attack_leaves_a_control_token_in_the_prompt(attack):
    task, text = targets(attack)[0]
    code = parse(attack.apply(text, task))
    prompt = json_messages(task.question, task.tests, code)[-1]["content"]
    assert not re.search(r"<\||\|>|<\uff5c|\[/?INST\]|</?s>", prompt)
