"""Decides whether a problem with unit tests may be published or solved, without executing any of it.

The question and tests may come from a model or a hostile peer, so `why_not` is a job of a worker. Every check is linear
in their length, which is limited first; none raises. The grammar of the tests is in `tasks.assertions`.
"""

from __future__ import annotations

import re
import unicodedata

from codezero.prompts.neutral import addresses_the_judge, plain
from codezero.prompts.proposer import MAX_TESTS
from codezero.tasks.assertions import Calls, read_tests

MIN_QUESTION_CHARS, MAX_QUESTION_CHARS = 20, 2_000
MIN_WORDS = 9
"""The fewest words of a question: a bare "Write a function f(a, b)" has six, and MBPP's shortest, without parameters,
have seven."""
MAX_TESTS_CHARS = 2_000
MIN_LATIN = 0.9
"""The smallest share of Latin letters among a question's letters."""

_URL = re.compile(r"https?:|ftp:|\bwww\.|\b[\w.+-]{1,64}@[\w-]{1,64}\.\w")
_ACT = r"(?:open|read|sav|delet|remov|creat|load|append|download|upload|renam|overwrit|eras|wip)(?:e|es|ing|s|ed)?"
_THING = r"(?:files?|director(?:y|ies)|folders?|disks?|file ?systems?|databases?|environment variables?)"
_UNSAFE = re.compile(
    rf"\b{_ACT}\b[^.\n]{{0,40}}\b{_THING}\b|"
    rf"\b(?:from|to|on|in) (?:an? |the )?(?:\w{{1,20}} )?{_THING}\b|"
    r"\b(?:subprocess|os\.system|os\.popen|sys\.|shutil|sockets?|eval|exec|rm -rf?|sudo|shell commands?|"
    r"system commands?|command line|https? requests?|web ?servers?|api keys?|user input|standard input|stdin)\b|"
    r"__\w+__",
    re.IGNORECASE,
)
"""Requests for effects that no pure function has. Words such as `files` alone do not match."""
_CODE = re.compile(r"```|~~~|\bdef[ \t]+\w+[ \t]*\(|\blambda\b[^\n]{0,60}:")


def why_not(question: str, tests: str) -> str | None:
    """Returns why a problem is unfit, as the word that reports count it by; None for a fit one."""
    return _why_not_question(question) or _why_not_tests(question, tests)


def _why_not_question(question: str) -> str | None:
    if len(question.strip()) < MIN_QUESTION_CHARS:
        return "question_too_short"
    if len(question) > MAX_QUESTION_CHARS:
        return "question_too_long"
    if _has_hidden(question):
        return "hidden_characters"
    if not _is_latin(question):
        return "language"
    if _URL.search(question) or _UNSAFE.search(question):
        return "unsafe"
    if addresses_the_judge(question):
        return "addresses_judge"
    if _CODE.search(question):
        return "solution_leaked"
    return "question_too_short" if len(re.findall(r"[^\W_]+", question)) < MIN_WORDS else None


def _why_not_tests(question: str, tests: str) -> str | None:
    if not tests.strip():
        return "no_tests"
    if len(tests) > MAX_TESTS_CHARS:
        return "tests_too_long"
    if _has_hidden(tests):
        return "hidden_characters"
    if _URL.search(tests):
        return "unsafe"
    if addresses_the_judge(tests):
        return "addresses_judge"
    calls = read_tests(tests)
    return _why_not_calls(question, calls) if isinstance(calls, Calls) else calls


def _why_not_calls(question: str, calls: Calls) -> str | None:
    if calls.num_tests > MAX_TESTS:
        return "too_many_tests"
    if len(calls.names) > 1:
        return "several_functions"
    if len(calls.arities) > 1:
        return "arity_differs"
    if calls.num_different < min(calls.num_tests, 2):
        return "equal_tests"
    if calls.num_results < min(calls.num_tests, 2):
        return "equal_results"  # a constant would pass
    (name,) = calls.names
    return None if re.search(rf"\b{name}\b", question) else "function_not_named"


def _has_hidden(text: str) -> bool:
    """Returns whether a text has invisible characters or control tokens of a chat."""
    return plain(text) != text.replace("\r\n", "\n")


def _is_latin(text: str) -> bool:
    letters = [char for char in text if char.isalpha()]
    latin = sum(char.isascii() or unicodedata.name(char, "").startswith("LATIN ") for char in letters)
    return latin >= MIN_LATIN * len(letters) > 0
