import pytest
import torch

from codezero.llm.review import ReviewedAnswer, review_answers
from tests.builders import tiny_model

PAD, YES, NO = 257, 40, 41


def alone(model, answer):
    """The same from one plain forward pass."""
    ids = [*answer.prompt, *answer.ids, *answer.then]
    with torch.no_grad():
        logprobs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return (
        [float(logprobs[len(answer.prompt) + t - 1, token]) for t, token in enumerate(answer.ids)],
        [float(logprobs[-1, YES]), float(logprobs[-1, NO])],
    )


@pytest.mark.parametrize(
    "prompts",
    [[(5,)], [(5, 6)], [(1, 2, 3, 4, 5, 6, 7)], [(1, 2), (1, 2, 3, 4, 5), (8, 9, 10)]],
    ids=["one token", "two tokens", "one prompt", "several prompts"],
)
def test_answers_of_different_lengths_get_what_each_gets_alone(prompts):
    model = tiny_model()
    answers = [
        ReviewedAnswer(prompt=prompts[0], ids=[10, 11, 12], then=[13]),
        ReviewedAnswer(prompt=prompts[-1], ids=[20]),
        ReviewedAnswer(prompt=prompts[len(prompts) // 2], ids=[30, 31, 32, 33], then=[34, 35, 36]),
        ReviewedAnswer(prompt=prompts[0], ids=[21]),
    ]
    found = review_answers(model, answers, [YES, NO], pad_id=PAD)
    for answer, (own, choices) in zip(answers, found, strict=True):
        expected_own, expected_choices = alone(model, answer)
        assert own == pytest.approx(expected_own, abs=1e-4)
        assert choices == pytest.approx(expected_choices, abs=1e-4)


def test_a_choice_of_a_bfloat16_model_is_finer_than_its_logits():
    """Logits over 16 are multiples of 1/8 in bfloat16, and the choices of different answers would be equal."""
    model = tiny_model().bfloat16()
    answers = [ReviewedAnswer(prompt=(5,), ids=[number], then=[13]) for number in range(10, 18)]
    with torch.no_grad():
        head = model.get_output_embeddings().weight
        hidden = model.base_model(torch.tensor([[5, 10, 13]])).last_hidden_state[0, -1]
        head[YES] = 20 * hidden / hidden.norm() ** 2
        head[NO] = 0.99 * head[YES]
    found = review_answers(model, answers, [YES, NO], pad_id=PAD)
    assert len({round(yes - no, 5) for _, (yes, no) in found}) == len(answers)
