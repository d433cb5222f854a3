import pytest
from hypothesis import given
from hypothesis import strategies as st

from codezero.config import RewardConfig
from codezero.config.load import load_config
from codezero.errors import ConfigError
from codezero.evaluate.reward import reward
from codezero.evaluate.rules import RULES
from codezero.types import FinishReason, Outcome, Verdict

FAITHFUL = load_config(["reward=faithful"]).reward
STOP, LENGTH = FinishReason.STOP, FinishReason.LENGTH


def judged(p_correct, **rules):
    return Verdict(outcome=Outcome.JUDGED, p_correct=p_correct, rules=rules)


@pytest.mark.parametrize(
    ("verdict", "finish", "total"),
    [
        (Verdict(outcome=Outcome.NO_TEXT), STOP, -1.2),
        (Verdict(outcome=Outcome.NO_TEXT), LENGTH, -1.2),
        (Verdict(outcome=Outcome.NO_CODE), STOP, -0.8),
        (Verdict(outcome=Outcome.NO_CODE), LENGTH, -1.2),
        (judged(0.9, parses=0.0), STOP, 1.2),
        (judged(0.9), LENGTH, 0.8),
        (judged(0.1, parses=1.0), STOP, 0.2),
        (judged(0.49), LENGTH, -0.2),
    ],
)
def test_faithful_preset_gives_the_table_of_the_public_node(verdict, finish, total):
    assert reward(verdict, finish, FAITHFUL).total == pytest.approx(total)


def test_default_reward_has_named_parts_that_add_up():
    verdict = judged(0.25, parses=1.0, names=0.0, fence=0.5, hardcoded=1.0)
    found = reward(verdict, STOP, RewardConfig())
    assert found.parts == pytest.approx(
        {"correct": 0.175, "structure": 0.05, "formatting": 0.05, "alignment": 0.1, "finished": 0.2}
    )
    assert found.total == pytest.approx(0.575)


def test_a_family_without_a_rule_that_applies_is_whole():
    assert reward(judged(0.0, parses=0.0), LENGTH, RewardConfig()).parts == pytest.approx(
        {"correct": 0.0, "structure": 0.0, "formatting": 0.1, "alignment": 0.1, "finished": -0.2}
    )


@given(
    p=st.floats(0, 1),
    scores=st.dictionaries(st.sampled_from(sorted(RULES)), st.floats(0, 1)),
    outcome=st.sampled_from([Outcome.JUDGED, Outcome.NO_CODE, Outcome.NO_TEXT]),
    finish=st.sampled_from(FinishReason),
    config=st.sampled_from([RewardConfig(), FAITHFUL]),
)
def test_totals_stay_between_the_bounds(p, scores, outcome, finish, config):
    verdict = Verdict(outcome=outcome, p_correct=p if outcome is Outcome.JUDGED else None, rules=scores)
    found = reward(verdict, finish, config)
    assert -1.2 - 1e-9 <= found.total <= 1.2 + 1e-9
    assert found.total == pytest.approx(sum(found.parts.values()))


@pytest.mark.parametrize("changes", [{"correct": 1.0}, {"no_text": -2.0}, {"finished": 0.3}, {"truncated": -0.5}])
def test_weights_whose_total_could_leave_the_bounds_are_refused(changes):
    with pytest.raises(ConfigError, match=r"keep totals in \[-1.2, 1.2\]"):
        RewardConfig(**changes)


@pytest.mark.parametrize("outcome", [Outcome.UNAVAILABLE, Outcome.UNSURE])
def test_what_nobody_could_tell_never_becomes_a_reward(outcome):
    with pytest.raises(ValueError, match=outcome.value):
        reward(Verdict(outcome=outcome, p_correct=0.5), STOP, RewardConfig())
