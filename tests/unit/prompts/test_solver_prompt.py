import pytest
from hypothesis import given
from hypothesis import strategies as st

from codezero.prompts import solver


def test_golden_an_answer_that_follows_the_prompt_parses():
    # The system prompt asks for this form word by word; if either changes, both must.
    assert "start with ```python on a line of its own" in solver.SYSTEM
    assert "end with ``` on a line of its own" in solver.SYSTEM
    assert solver.parse("```python\ndef f(x):\n    return x\n```") == "def f(x):\n    return x"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("Sure!\n```python\nx = 1\n```\nDone.", "x = 1"),
        ("```python\nx = 1", "x = 1"),  # cut off by the token limit
        ("```py\nx = 1\n```", "x = 1"),
        ("```Python\r\nx = 1\r\n```", "x = 1\r"),
        ("```python\na\n```\n```python\nb\n```", "a"),
        ('```python\ns = "```"\n```', 's = "```"'),
        ("  ```python\n  x = 1\n  ```", "  x = 1"),
        ("x = 1", None),
        ("```\nx = 1\n```", None),
        ("```python\n```", None),
        ("```python\n   \n```", None),
        ("", None),
        ("```python\n" + "x" * 20_001, None),
    ],
)
def test_parse(answer, code):
    assert solver.parse(answer) == code


@given(st.text())
def test_any_text_parses_to_code_or_none(answer):
    code = solver.parse(answer)
    assert code is None or code.strip()


def test_question_is_the_users_message():
    system, user = solver.messages(" add two numbers \n")
    assert (system["role"], user["role"], user["content"]) == ("system", "user", "add two numbers")


HEAD = "\n\nKeep to the function name and the arguments used in these tests:\n"


@pytest.mark.parametrize(
    ("tests", "few"),
    [
        ("assert f(1) == 2\nassert f(2) == 3\nassert f(5) == 6", "assert f(1) == 2"),
        ("assert f(1) == 2", "assert f(1) == 2"),
        ('assert f("ab") == "ba"\nassert f("cd") == "dc"', 'assert f("ab") == "ba"'),
        ("assert f(1) == True\nassert f(2) == False\nassert f(3) == True", "assert f(1) == True"),
        ("assert f(1) == 2\nassert f(0) == None\nassert f(2) == 3", "assert f(1) == 2\nassert f(0) == None"),
        (
            "assert f('a') == ('Found it!')\nassert f('b') == ('Not found!')\nassert f('c') == ('Not found!')",
            "assert f('a') == ('Found it!')\nassert f('b') == ('Not found!')",
        ),
        ("assert f(1) == 7\nassert f(2) == 'Not Possible'\nassert f(3) == 8", None),
        ("n = 4\nassert f(n) == 5\nassert f(n + 1) == 6", "n = 4\nassert f(n) == 5"),
        ("assert f([1,\n 2]) == 3\nassert f([4,\n 5]) == 9", "assert f([1,\n 2]) == 3"),
        ("assert is_even(2)\nassert not is_even(3)", "assert is_even(2)"),
        ("Input:\n1\nOutput:\n2\n", "Input:\n1\nOutput:\n2"),
        ("", ""),
    ],
    ids=[
        *("one of three", "one of one", "texts that the input decides", "booleans", "None among numbers", "messages"),
        *("a text among numbers", "set-up", "asserts of two lines", "without ==", "examples of a program", "nothing"),
    ],
)
def test_few_of_the_tests_are_shown(tests, few):
    expected = tests.rpartition("\n")[0] if few is None else few
    assert solver.few_of(tests) == expected
    shown, whole = solver.with_tests("Do it.", expected), solver.with_tests("Do it.", tests)
    assert solver.showing_all(shown, tests) == whole
    assert solver.showing_all(whole, tests) == whole


@pytest.mark.parametrize(
    "question",
    [
        "Do it.",
        f"Do it.{HEAD}assert f(2) == 3",
        f"Do it.{HEAD}assert f(1) == 2 ",
        f"Do it.{HEAD}assert f(1) == 2\nassert g()",
        "assert f(1) == 2",
        "",
    ],
    ids=["no tests", "another of the tests", "a space more", "a test of its own", "the test alone", "nothing"],
)
def test_another_question_stays_as_it_is(question):
    assert solver.showing_all(question, "assert f(1) == 2\nassert f(2) == 3") == question


@given(st.text(), st.text())
def test_of_any_texts_something_is_shown_and_it_leads_back_to_all(text, tests):
    few = solver.few_of(tests)
    assert set(few.split("\n")) <= set(tests.split("\n")) | {""}
    assert solver.showing_all(solver.with_tests(text, few), tests) == solver.with_tests(text, tests)
