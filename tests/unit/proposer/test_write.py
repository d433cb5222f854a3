"""Drafts from a model in this process and from a server: ideas, tokens, repair, and going on where it stopped."""

import json
from contextlib import nullcontext

import pytest

from codezero.config import ProposerConfig, Reference
from codezero.errors import ProposerError
from codezero.llm import client
from codezero.prompts import proposer as prompt
from codezero.prompts.ideas import VERBS
from codezero.proposer.models import LocalModel, ServedModel, Written
from codezero.proposer.write import Writer
from codezero.types import SampledTokens
from tests.builders import loaded
from tests.unit.evaluate.loopback import in_turn, reply, serve

TOKENS = SampledTokens(prompt_ids=(1,), completion_ids=(2,), logprobs=(-0.5,))
ANSWER = json.dumps({"question": "Write a function f(x).", "tests": ["assert f(1) == 2"], "solution": "def f(x): ..."})


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(client, "WAIT_S", 0.01)


@pytest.fixture(scope="module")
def tiny():
    return loaded()


def local(tiny, seed=0, progress=lambda *_: None, **config):
    settings = ProposerConfig(**{"max_new_tokens": 24, **config})
    return Writer(LocalModel(tiny, settings, seed=seed, progress=progress, weights=nullcontext), settings, seed=seed)


def begun_with(verb):
    return prompt.prefix(prompt.Idea(topic="", shape="", verb=verb))


class Scripted:
    """A model that gives these answers, and remembers what it was asked."""

    name = "scripted"

    def __init__(self, *texts):
        self.texts, self.chats, self.prefixes = list(texts), [], []

    def answer(self, chats, prefixes):
        self.chats += chats
        self.prefixes += prefixes
        return [Written(self.texts.pop(0), TOKENS) for _ in chats]


def test_drafts_keep_the_level_and_the_exact_tokens_of_the_answer(tiny):
    steps = []
    drafts = local(tiny, progress=lambda *step: steps.append(step)).write(4, 3)
    assert len(drafts) == 3
    for draft in drafts:
        assert draft.level == 4
        begun = next(begun for begun in map(begun_with, VERBS) if draft.raw.startswith(begun))
        assert 1 <= len(draft.tokens.completion_ids) == len(draft.tokens.logprobs) <= 24
        completion = tiny.tokenizer.decode(draft.tokens.completion_ids, skip_special_tokens=True)
        assert draft.raw == begun + completion
        asked = tiny.tokenizer.decode(draft.tokens.prompt_ids)
        assert "Level 4 of 5, hard" in asked
        assert asked.endswith(begun)
    assert steps[-1][0] == "write"


def test_every_problem_has_an_idea_of_its_own(tiny):
    model = Scripted(*[ANSWER] * 40)
    Writer(model, ProposerConfig(), seed=0).write(1, 40)
    assert len({chat[-1]["content"] for chat in model.chats}) > 35


def test_a_resumed_writer_writes_what_an_unkilled_one_would(tiny):
    unkilled, before, after = local(tiny), local(tiny), local(tiny, seed=99)
    unkilled.write(2, 2)
    before.write(2, 2)
    after.load_state_dict(before.state_dict())
    assert after.write(3, 2) == unkilled.write(3, 2)


def test_a_writer_goes_on_in_a_folder_in_which_a_server_wrote_before(tiny):
    served = ServedModel(ProposerConfig(url="http://host/v1", model="writer"))
    begun, after = local(tiny), local(tiny)
    after.load_state_dict({**begun.state_dict(), "model": served.state_dict()})
    assert after.write(2, 1) == begun.write(2, 1)


def test_other_seeds_write_other_problems(tiny):
    assert local(tiny, seed=1).write(2, 1) != local(tiny, seed=2).write(2, 1)


def test_a_prompt_without_room_for_an_answer_is_an_error_that_says_what_to_set(tiny):
    with pytest.raises(ProposerError, match=r"room for 48 tokens beside proposer\.max_new_tokens=2000"):
        local(tiny, max_new_tokens=2000).write(1, 1)


def test_what_can_be_read_is_in_the_draft_and_what_cannot_is_none():
    first, second = Writer(Scripted(ANSWER, "no"), ProposerConfig(), seed=0).write(2, 2)
    assert (first.answer.question, first.answer.tests) == ("Write a function f(x).", "assert f(1) == 2")
    assert (second.answer, second.raw) == (None, "no")


def test_repair_asks_again_for_unreadable_answers_only():
    model = Scripted("no", ANSWER, "neither", ANSWER, "still not")
    drafts = Writer(model, ProposerConfig(repair=True), seed=0).write(2, 3)
    assert [draft.answer is None for draft in drafts] == [False, False, True]
    assert [draft.raw for draft in drafts] == ["no", ANSWER, "neither"]
    assert [draft.tokens for draft in drafts] == [None, TOKENS, TOKENS]  # the first answer has not earned its repair
    assert len(model.chats) == 5
    assert model.prefixes[3:] == [prompt.REPAIR_PREFIX] * 2


def test_repair_asks_nothing_where_all_can_be_read():
    model = Scripted(ANSWER)
    Writer(model, ProposerConfig(repair=True), seed=0).write(2, 1)
    assert len(model.chats) == 1


@pytest.mark.parametrize(("reference", "asked"), [(Reference.none, False), (Reference.dry_run, True)])
def test_a_solution_is_asked_for_where_one_is_needed(reference, asked):
    model = Scripted(ANSWER)
    Writer(model, ProposerConfig(reference=reference), seed=0).write(2, 1)
    assert ('"solution"' in model.chats[0][0]["content"]) is asked


def served(server, **config):
    settings = ProposerConfig(
        **{"model": "writer", "url": server.url + "/v1", "timeout_s": 5.0, "retries": 0, **config}
    )
    return Writer(ServedModel(settings), settings, seed=0)


def says(text):
    return reply(200, {"choices": [{"message": {"content": text}}]})


def test_a_server_is_asked_without_thinking_and_gives_no_tokens():
    with serve(says(ANSWER)) as server:
        (draft,) = served(server, temperature=0.7, top_p=0.9, max_new_tokens=99).write(3, 1)
    assert (draft.answer.tests, draft.tokens, draft.raw) == ("assert f(1) == 2", None, ANSWER)
    (body,) = server.bodies
    assert (body["model"], body["temperature"], body["top_p"], body["max_tokens"]) == ("writer", 0.7, 0.9, 99)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert "Level 3 of 5, medium" in body["messages"][-1]["content"]


def test_a_server_that_refuses_the_switch_against_thinking_is_asked_without_it():
    with serve(in_turn(reply(400, b"unknown field"), says(ANSWER))) as server:
        writer = served(server)
        assert writer.write(3, 1)[0].answer is not None
        writer.write(3, 1)
    assert ["chat_template_kwargs" in body for body in server.bodies] == [True, False, False]


@pytest.mark.parametrize("nothing", [{"choices": []}, {"choices": [{"message": {"content": None}}]}])
def test_an_answer_without_text_cannot_be_read(nothing):
    with serve(reply(200, nothing)) as server:
        (draft,) = served(server).write(3, 1)
    assert (draft.raw, draft.answer) == ("", None)


def test_a_server_that_fails_is_an_error_about_the_proposers_settings(monkeypatch):
    monkeypatch.setenv("PROPOSER_KEY", "secret")
    with serve(reply(401, b"no: secret")) as server:
        with pytest.raises(ProposerError, match=r"the proposer's model at .* refused the key .*: check PROPOSER_KEY$"):
            served(server, api_key_env="PROPOSER_KEY").write(3, 1)
        assert server.keys == ["Bearer secret"]
    with pytest.raises(ProposerError, match=r"proposer's model at .* check that the server runs, and proposer\.url"):
        served(server).write(3, 1)
    with pytest.raises(ProposerError, match=r"proposer\.url is not a plain server address.* see proposer\.api_key_env"):
        ServedModel(ProposerConfig(model="writer", url="http://user:pass@host/v1"))
    with pytest.raises(ProposerError, match=r"proposer\.model=auto names no model of a server"):
        ServedModel(ProposerConfig(url="http://127.0.0.1:1/v1"))
