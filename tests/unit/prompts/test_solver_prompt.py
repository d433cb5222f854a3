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
