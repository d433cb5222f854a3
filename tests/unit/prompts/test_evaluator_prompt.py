import pytest
from hypothesis import given
from hypothesis import strategies as st

from codezero.prompts import evaluator


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ('trace...\n```json\n{"is_correct": true}\n```', True),
        ('```json\n{"is_correct": false}\n```', False),
        ('{"is_correct": true}', True),
        ('```json\n{"is_correct": true}\n```\nwait\n```json\n{"is_correct": false}\n```', False),
        ('```json\n{"is_correct": "true"}\n```', None),
        ('```json\n{"is_correct": 1}\n```', None),
        ('```json\n{"correct": true}\n```', None),
        ("```json\n{oops}\n```", None),
        ("true", None),
        ("[" * 100_000, None),
        ("", None),
    ],
)
def test_parse_json(reply, verdict):
    assert evaluator.parse_json(reply) is verdict


def test_golden_a_reply_in_the_asked_form_parses():
    ask = evaluator.json_messages("q", "t", "c")[-1]["content"]
    assert evaluator.parse_json(ask) is True  # the form shown in the prompt is itself a valid reply


@given(st.text(alphabet="`\na", max_size=40))
def test_no_solution_can_close_its_own_block(code):
    prompt = evaluator.yes_no_messages("q", "t", code)[-1]["content"]
    block = prompt.split("Solution:\n", 1)
    if len(block) == 2:
        fence = block[1].split("python\n", 1)[0]
        inside = block[1].split("python\n", 1)[1].rsplit("\n" + fence, 1)[0]
        assert fence not in inside
        assert inside == code.strip()


def test_overlong_parts_are_cut():
    assert len(evaluator.yes_no_messages("q" * 50_000, "t", "c")[-1]["content"]) < 7_000
