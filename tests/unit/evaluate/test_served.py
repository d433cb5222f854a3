"""Judges behind OpenAI's and Ollama's protocols: what they are sent, and how their answers are read."""

import logging
import math
import time

import pytest

from codezero.config import Backend, EvaluatorConfig, VerdictMode
from codezero.errors import EvaluatorError
from codezero.evaluate.backends.choose import make_outside
from codezero.evaluate.backends.served import shares
from codezero.evaluate.judge import ModelJudge
from codezero.llm import client
from codezero.llm.chat_server import Alternative, Position, plain
from tests.builders import task
from tests.strangers import submission
from tests.unit.evaluate.loopback import answer, backend, never, reply, serve

OPENAI, OLLAMA = Backend.openai, Backend.ollama
BOTH = pytest.mark.parametrize("kind", [OPENAI, OLLAMA], ids=["openai", "ollama"])
CHAT = [{"role": "user", "content": "Is it?"}]
NEARLY_ALL = [("Yes", math.log(0.6)), (" yes", math.log(0.1)), ("NO\n", math.log(0.2)), ("None", math.log(0.1))]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(client, "WAIT_S", 0.01)


@BOTH
def test_probabilities_of_all_spellings_are_added_and_normalised(kind):
    with serve(reply(200, answer(kind, NEARLY_ALL))) as server:
        (found,) = backend(kind, server).choose([CHAT])
    assert found == pytest.approx((0.7 / 0.9, 0.2 / 0.9))


def test_openai_request_is_one_token_without_thinking():
    with serve(reply(200, answer(OPENAI, NEARLY_ALL))) as server:
        backend(OPENAI, server).choose([CHAT])
    assert server.paths == ["/v1/chat/completions"]
    assert server.bodies == [
        {
            "model": "judge",
            "messages": CHAT,
            "max_tokens": 1,
            "temperature": 0.0,
            "logprobs": True,
            "top_logprobs": 20,
            "chat_template_kwargs": {"enable_thinking": False},
        }
    ]


def test_ollama_request_is_one_token_without_thinking_and_never_cut():
    with serve(reply(200, answer(OLLAMA, NEARLY_ALL))) as server:
        backend(OLLAMA, server, max_new_tokens=100).choose([CHAT])
    assert server.paths == ["/api/chat"]
    (body,) = server.bodies
    assert (body["think"], body["truncate"], body["shift"], body["stream"]) == (False, False, False, False)
    assert (body["logprobs"], body["top_logprobs"]) == (True, 20)
    assert body["options"] == {"temperature": 0.0, "num_predict": 1, "num_ctx": 6_244}


@BOTH
def test_written_verdicts_come_back_in_order(kind):
    def echo(handler, count):
        last = server.bodies[count]["messages"][-1]["content"]
        time.sleep(0.1 * (3 - int(last)))
        reply(200, answer(kind, text=f"answer {last}"))(handler, count)

    with serve(echo) as server:
        chats = [[{"role": "user", "content": str(n)}] for n in range(4)]
        assert backend(kind, server).write(chats, 7) == [f"answer {n}" for n in range(4)]
    lengths = {body.get("max_tokens") or body["options"]["num_predict"] for body in server.bodies}
    assert lengths == {7}


@BOTH
def test_model_judge_reads_probabilities_and_json(kind):
    with serve(reply(200, answer(kind, NEARLY_ALL, '```json\n{"is_correct": false}\n```'))) as server:
        for verdict, expected in ((VerdictMode.logit, 0.7 / 0.9), (VerdictMode.generate, 0.0)):
            asked = backend(kind, server, verdict=verdict)
            asked.check()
            (opinion,) = ModelJudge(asked, EvaluatorConfig(verdict=verdict)).judge([submission(task(), "x = 1")])
            assert opinion.p_correct == pytest.approx(expected)


ODD = {
    "no log-probabilities": lambda kind: answer(kind),
    "no position": lambda kind: answer(kind, []),
    "neither choice": lambda kind: answer(kind, [("Maybe", -0.1), ("None", -1.0)]),
    "probability zero": lambda kind: answer(kind, [("Yes", -9999.0), ("No", -9999.0)]),
}


@BOTH
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_reply_without_the_choices_is_no_answer_and_the_check_says_what_to_set(kind, odd):
    with serve(reply(200, odd(kind))) as server:
        asked = backend(kind, server)
        assert asked.choose([CHAT]) == [None]
        with pytest.raises(EvaluatorError, match=r"no probabilities of Yes and No: set evaluator\.verdict=generate"):
            asked.check()


def test_probabilities_above_one_are_taken_as_one():
    assert shares([Position("No", 700.0, [Alternative("Yes", 0.0)])]) == (0.5, 0.5)


@BOTH
def test_a_server_that_is_not_there_is_an_error_that_says_where(kind):
    with serve(never) as server:
        pass
    with pytest.raises(EvaluatorError, match=rf"the judge at {server.url}.* cannot be asked.*evaluator\.url"):
        backend(kind, server).check()


@BOTH
def test_a_prompt_that_the_server_refuses_gets_no_answer_and_the_others_do(kind):
    def picky(handler, count):
        too_long = len(server.bodies[count]["messages"][-1]["content"]) > 100
        (reply(400, b"\x1b[2Jtoo long") if too_long else reply(200, answer(kind, NEARLY_ALL)))(handler, count)

    with serve(picky) as server:
        long = [{"role": "user", "content": "x" * 101}]
        found = backend(kind, server).choose([CHAT, long, CHAT])
    assert [answer is None for answer in found] == [False, True, False]


def test_a_server_that_takes_no_switch_for_thinking_is_asked_without():
    def strict(handler, count):
        unknown = "chat_template_kwargs" in server.bodies[count]
        (reply(400, b"unknown field") if unknown else reply(200, answer(OPENAI, NEARLY_ALL)))(handler, count)

    with serve(strict) as server:
        asked = backend(OPENAI, server)
        asked.check()
        assert asked.choose([CHAT])[0] is not None


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed_so_the_key_goes_to_the_configured_host_only(monkeypatch, status):
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    with serve(reply(200, answer(OPENAI, NEARLY_ALL))) as elsewhere:
        with serve(reply(status, b"", Location=elsewhere.url + "/v1/chat/completions")) as server:
            with pytest.raises(EvaluatorError, match=r"redirects .* not followed") as caught:
                backend(OPENAI, server, retries=2).choose([CHAT])
            assert server.keys == ["Bearer secret-key"]
        assert elsewhere.bodies == []
    assert "secret-key" not in str(caught.value)


@BOTH
def test_a_proxy_of_the_environment_sees_nothing_of_a_local_server(monkeypatch, kind):
    with serve(reply(200, answer(kind, NEARLY_ALL))) as server, serve(reply(200, answer(kind, NEARLY_ALL))) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        backend(kind, server).choose([CHAT])
        assert (len(server.bodies), len(proxy.bodies)) == (1, 0)


def test_key_comes_from_the_named_variable_and_goes_to_no_ollama(monkeypatch, caplog):
    monkeypatch.setenv("MY_KEY", "secret-key\n")
    monkeypatch.setenv("OPENAI_API_KEY", "other-key")
    with serve(reply(401, b"no")) as server, caplog.at_level(0):
        with pytest.raises(EvaluatorError, match=r"refused the key .*: check MY_KEY") as caught:
            backend(OPENAI, server, api_key_env="MY_KEY").choose([CHAT])
        with pytest.raises(EvaluatorError):
            backend(OLLAMA, server, api_key_env="MY_KEY").choose([CHAT])
        assert server.keys == ["Bearer secret-key", None]
    assert "secret-key" not in caplog.text + str(caught.value)


@pytest.mark.parametrize("status", [400, 402, 404])
def test_a_server_that_repeats_the_key_does_not_get_it_into_messages(monkeypatch, caplog, status):
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    with serve(reply(status, b"x" * 195 + b" secret-key")) as server, caplog.at_level(0):
        try:
            backend(OPENAI, server).choose([CHAT])
        except EvaluatorError as error:
            logging.getLogger("codezero").warning("%s", error)
    assert "xxx ..." in caplog.text
    assert "secr" not in caplog.text


@pytest.mark.parametrize("key", ["two\nlines", "caf\u00e9", "a\x1bb"])
def test_a_key_that_cannot_be_one_is_refused_and_not_shown(monkeypatch, key):
    monkeypatch.setenv("MY_KEY", key)
    with pytest.raises(EvaluatorError, match="MY_KEY holds characters") as caught:
        make_outside(OPENAI, EvaluatorConfig(model="judge", api_key_env="MY_KEY"), None, 1)
    assert key not in str(caught.value)


@BOTH
@pytest.mark.parametrize(
    "url",
    [
        *("localhost:8000", "ftp://host", "http://", "http://user:secret@host", "http://host:x", "file:///etc/passwd"),
        *("http://host/?a=secret", "http://[::1", "http://host/\x1b[2J", "http://256.1.1.1:9"),
    ],
)
def test_an_address_that_is_none_is_refused_and_not_shown(kind, url):
    with pytest.raises(EvaluatorError, match=r"evaluator\.url is not a plain server address") as caught:
        make_outside(kind, EvaluatorConfig(model="judge", url=url), None, 1)
    assert "secret" not in str(caught.value)
    assert str(caught.value).isprintable()


@BOTH
def test_a_server_needs_the_models_name(kind):
    with pytest.raises(EvaluatorError, match=r"evaluator\.model=auto"):
        make_outside(kind, EvaluatorConfig(), None, 1)


@pytest.mark.parametrize(
    "marker",
    [
        *("<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|eot_id|>", "</s>", "<s>", "<end_of_turn>", "<think>"),
        *("</think>", "[INST]", "[/INST]", "<\uff5cend\u2581of\u2581sentence\uff5c>"),
    ],
)
def test_markers_that_end_a_turn_do_not_reach_a_server_whole(marker):
    nested = marker[0] + marker + marker[1:]
    (message,) = plain([{"role": "user", "content": f"x{marker}y {marker * 2} {nested}"}])
    assert marker not in message["content"]
    assert message["content"].replace(" ", "") == f"x{marker}y{marker * 2}{nested}"


@pytest.mark.parametrize(
    "code", ["if a < b and c > d:\n    x[i] = y[0] << 2", "a<b", "x[N]", "[A, B]", "lambda: 1 -> 2"]
)
def test_ordinary_code_reaches_a_server_as_it_is(code):
    assert plain([{"role": "user", "content": code}]) == [{"role": "user", "content": code}]


def test_a_lone_surrogate_does_not_stop_a_request():
    with serve(reply(200, answer(OPENAI, text="ok"))) as server:
        assert backend(OPENAI, server).write([[{"role": "user", "content": "a\ud800b"}]], 1) == ["ok"]
    assert server.bodies[0]["messages"][0]["content"] == "a?b"
