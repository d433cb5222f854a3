import pytest

from codezero import compose
from codezero.config import RewardConfig
from codezero.evaluate.reward import reward
from codezero.types import FinishReason, Outcome, Verdict

FAITHFUL = compose.load(["reward=faithful"]).reward
STOP, LENGTH = FinishReason.STOP, FinishReason.LENGTH


def judged(p_correct, **rules):
    return Verdict(outcome=Outcome.JUDGED, p_correct=p_correct, rules=rules)


@pytest.mark.parametrize(
    ("verdict", "finish", "total"),
    [
        (Verdict(outcome=Outcome.NO_TEXT), STOP, -1.0),
        (Verdict(outcome=Outcome.NO_TEXT), LENGTH, -1.4),
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
    found = reward(judged(0.25, parses=1.0, names=0.0), STOP, RewardConfig())
    assert found.parts == {"correct": 0.25, "rules": 0.25, "finished": 0.2}
    assert found.total == pytest.approx(0.7)


def test_an_outage_never_becomes_a_reward():
    with pytest.raises(ValueError, match="unavailable"):
        reward(Verdict(outcome=Outcome.UNAVAILABLE), STOP, RewardConfig())
