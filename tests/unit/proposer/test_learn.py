import json

import pytest
import torch

from codezero.config import TrainConfig
from codezero.llm.logprobs import CompletionScorer
from codezero.proposer.feedback import JudgedProposal
from codezero.proposer.learn import INVALID_REWARD, MAX_DRAFTS, MAX_LAG, ProposalLearner, learnability
from codezero.reports import UpdateReport
from codezero.train.learner import GrpoLearner
from codezero.types import SampledTokens
from tests.builders import tiny_model


class RecordingLearner:
    def __init__(self):
        self.policy_version = 0
        self.steps = []

    def step(self, groups):
        self.steps.append(groups)
        self.policy_version += bool(groups)
        return UpdateReport(policy_version=self.policy_version, loss=0.5)


def sample(proposal_id, level=2, prompt_ids=(1, 2, 3), completion_ids=(40, 41, 256), logprobs=None):
    logprobs = tuple(logprobs or (-1.0,) * len(completion_ids))
    tokens = SampledTokens(prompt_ids=prompt_ids, completion_ids=completion_ids, logprobs=logprobs)
    return level, tokens, proposal_id


def keep(made, samples):
    for one in samples:
        made.keep(*one)


def judged(proposal_id, success, level=2, differed=True):
    return JudgedProposal(proposal_id=proposal_id, level=level, success=success, reward=success, differed=differed)


def proposal_learner(learner=None):
    learner = learner or RecordingLearner()
    return ProposalLearner(learner), learner


def rewards(groups):
    return [[reward.total for reward in group.rewards] for group in groups]


@pytest.mark.parametrize(("success", "expected"), [(0.0, 0.0), (1.0, 0.0), (0.5, 1.0), (0.25, 0.75), (0.75, 0.75)])
def test_a_problem_earns_most_where_solvers_succeed_half_the_time(success, expected):
    assert learnability(success) == expected
    assert expected > INVALID_REWARD


def test_drafts_of_a_level_are_compared_whatever_their_prompts():
    made, learner = proposal_learner()
    keep(made, [sample("a"), sample("b", prompt_ids=(9, 8)), sample(None), sample("c", level=3), sample(None, level=3)])
    lesson = made.learn([judged("a", 0.5), judged("b", 1.0), judged("c", 0.25)])
    (groups,) = learner.steps
    assert rewards(groups) == [[1.0, 0.0, -0.5], [0.75, -0.5]]
    assert [r.tokens.prompt_ids for r in groups[0].group.rollouts] == [(1, 2, 3), (9, 8), (1, 2, 3)]
    assert lesson.reward_mean == pytest.approx((1.0 + 0.0 - 0.5 + 0.75 - 0.5) / 5)
    assert lesson.update.loss == 0.5


def test_a_problem_that_some_always_solve_and_others_never_earns_nothing():
    made, learner = proposal_learner()
    keep(made, [sample("a"), sample("b")])
    made.learn([judged("a", 0.5), judged("b", 0.5, differed=False)])
    assert rewards(learner.steps[0]) == [[1.0, 0.0]]


def test_drafts_wait_for_feedback_and_for_company_and_are_trained_on_once():
    made, learner = proposal_learner()
    keep(made, [sample("a"), sample("b"), sample(None), sample(None)])
    assert made.learn([]).reward_mean is None
    made.learn([judged("a", 0.5)])
    made.learn([judged("a", 0.5)])
    made.learn([judged("b", 0.5)])  # alone: those it could be compared with are used up
    keep(made, [sample("c")])
    made.learn([judged("c", 0.0), judged("unknown", 0.5)])
    assert [rewards(groups) for groups in learner.steps] == [[], [[1.0, -0.5, -0.5]], [], [], [[1.0, 0.0]]]


def test_equal_rewards_teach_nothing():
    made, learner = proposal_learner()
    keep(made, [sample("a"), sample("b"), sample(None, level=1), sample(None, level=1)])
    assert made.learn([judged("a", 0.25), judged("b", 0.75)]).reward_mean is None
    assert learner.steps == [[]]


def test_a_group_is_as_old_as_its_oldest_draft():
    made, learner = proposal_learner()
    learner.policy_version = 4
    keep(made, [sample("a")])
    learner.policy_version = 6
    keep(made, [sample(None)])
    made.learn([judged("a", 0.5)])
    assert learner.steps[0][0].group.policy_version == 4


def test_drafts_of_a_policy_too_old_are_not_learned_from():
    made, learner = proposal_learner()
    keep(made, [sample("a"), sample("b")])
    learner.policy_version = MAX_LAG
    made.learn([judged("a", 0.5)])
    learner.policy_version = MAX_LAG + 1
    made.learn([judged("b", 0.0)])
    assert learner.steps == [[], []]


def test_memory_is_bounded():
    made, _ = proposal_learner()
    for i in range(3):
        keep(made, [sample(f"{i} {j}") for j in range(100)])
    drafts = made.state_dict()["drafts"]
    assert (len(drafts), drafts[0]["id"], drafts[-1]["id"]) == (MAX_DRAFTS, "0 44", "2 99")


def test_waiting_drafts_survive_a_restart():
    first, _ = proposal_learner()
    keep(first, [sample("a", logprobs=(-0.5, -0.25, 0.0)), sample("b"), sample(None, level=1), sample("c", level=1)])
    first.learn([judged("b", 0.25)])
    second, learner = proposal_learner()
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert second.state_dict() == first.state_dict()
    second.learn([judged("a", 0.5), judged("c", 0.5)])
    assert rewards(learner.steps[0]) == [[-0.5, 1.0], [1.0, 0.75]]
    assert learner.steps[0][1].group.rollouts[0].tokens.logprobs == (-0.5, -0.25, 0.0)


# --- with a real learner ---

GOOD, BORING, INVALID = (40, 41, 42, 256), (60, 61, 256), (50, 51, 52)
PROMPTS = {GOOD: (1, 2, 3), BORING: (9, 8, 7, 6), INVALID: (1, 5)}


def grpo(model, **config):
    return GrpoLearner(model, None, TrainConfig(learning_rate=1e-3, **config), temperature=1.0, max_completion_length=8)


def logprobs(model, completion):
    ids = torch.tensor([completion])
    with torch.no_grad():
        scorer = CompletionScorer(model, torch.tensor(PROMPTS[completion]))
        return scorer.logprobs(ids, torch.ones_like(ids).bool())[0].tolist()


def drafted(model, completion, proposal_id):
    return sample(
        proposal_id,
        prompt_ids=PROMPTS[completion],
        completion_ids=completion,
        logprobs=logprobs(model, completion),
    )


@pytest.mark.parametrize("num_iterations", [1, 2])
def test_the_problem_that_teaches_becomes_likelier_and_the_rejected_one_less(num_iterations):
    model = tiny_model()
    before = {draft: sum(logprobs(model, draft)) for draft in PROMPTS}
    made, learner = proposal_learner(grpo(model, num_iterations=num_iterations))
    for batch in range(4):
        keep(made, [drafted(model, GOOD, f"good {batch}"), drafted(model, INVALID, None)])
        lesson = made.learn([judged(f"good {batch}", 0.5)])
        assert lesson.update.skipped is None
    assert learner.policy_version == 4
    assert sum(logprobs(model, GOOD)) > before[GOOD] + 0.5
    assert sum(logprobs(model, INVALID)) < before[INVALID] - 0.5


def test_feedback_that_comes_versions_later_still_teaches_by_the_old_log_probs():
    model = tiny_model()
    made, learner = proposal_learner(grpo(model))
    keep(made, [drafted(model, GOOD, "good"), drafted(model, BORING, "boring")])
    for batch in range(2):  # other levels move on in the meantime
        other = [drafted(model, GOOD, f"{batch}"), drafted(model, INVALID, None)]
        keep(made, [(5, *rest) for _, *rest in other])
        made.learn([judged(f"{batch}", 0.5, level=5)])
    before = {draft: sum(logprobs(model, draft)) for draft in PROMPTS}
    lesson = made.learn([judged("good", 0.5), judged("boring", 1.0)])
    assert learner.policy_version == 3
    assert lesson.reward_mean == 0.5
    assert lesson.update.loss != pytest.approx(0.0, abs=1e-6)  # ratios to the policy that sampled are not 1
    assert sum(logprobs(model, BORING)) < before[BORING]


def test_nothing_to_learn_from_is_a_skipped_update():
    made, learner = proposal_learner(grpo(tiny_model()))
    keep(made, [sample(None), sample(None)])
    lesson = made.learn([])
    assert lesson.update.skipped is not None
    assert (lesson.reward_mean, learner.policy_version) == (None, 0)
