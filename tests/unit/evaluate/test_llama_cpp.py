"""llama.cpp in a process of its own: its real server on a tiny model and on the real one, and its supervision."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx2
import psutil
import pytest
import torch

from codezero.config import EvaluatorConfig, VerdictMode, checkout
from codezero.errors import EvaluatorError, ModelError
from codezero.evaluate.backends import served, transformers
from codezero.evaluate.backends.llama_cpp import LlamaCppBackend
from codezero.evaluate.backends.transformers import TransformersBackend
from codezero.llm import store
from codezero.llm.chat_server import plain
from codezero.llm.convert import convert
from codezero.llm.load import load_model
from codezero.prompts import evaluator as prompt
from tests.commands import ROOT
from tests.processes import is_alive, wait_until, wait_until_gone
from tests.unit.llm import gguf_files

CHAT = [{"role": "system", "content": "Answer."}, {"role": "user", "content": "in 12?"}]
MARKS = {"YES": "~", "NO": "^"}
"""What stands for the answers: tokens of the tiny model that are among the 20 likeliest, which the server names."""


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: pip install codezero[llama-cpp]")
    path = tmp_path_factory.mktemp("weights") / "tiny.gguf"
    gguf_files.write_tiny_gguf(path)
    return path


@pytest.fixture
def tiny(weights):
    made = LlamaCppBackend(EvaluatorConfig(verdict=VerdictMode.generate), weights, 1)
    yield made
    made.close()


def test_llama_cpp_and_transformers_read_the_same_probabilities_from_the_same_file(
    tiny, weights, tmp_path, monkeypatch
):
    for name, mark in MARKS.items():
        monkeypatch.setattr(served, name, mark)
        monkeypatch.setattr(transformers, name, mark)
    folder = tmp_path / "converted"
    folder.mkdir()
    convert(weights, gguf_files.pin(weights.read_bytes()), folder)
    local = TransformersBackend(load_model("tiny", folder, torch.device("cpu"), torch.float32), EvaluatorConfig())
    chats = [CHAT, [{"role": "user", "content": "def f(x): return x\n" * 3}]]
    for found, expected in zip(tiny.choose(chats), local.choose(chats), strict=True):
        assert found == pytest.approx(expected, abs=0.01)
        assert min(found) > 0


def test_a_process_that_was_killed_is_started_again(tiny):
    tiny.check()
    before, first = tiny.write([CHAT], 5), tiny._process.pid
    os.kill(first, signal.SIGKILL)
    assert tiny.write([CHAT], 5) == before
    assert tiny._process.pid != first
    assert psutil.Process(tiny._process.pid).name().startswith("python")


def test_a_marker_in_untrusted_text_is_plain_text_to_the_real_server(tiny):
    tiny.check()
    client = tiny._running()._server._client

    def num_tokens(messages):
        body = {"messages": messages, "max_tokens": 1}
        found = httpx2.post(client.place + "/chat/completions", json=body, headers=client._headers, trust_env=False)
        return found.json()["usage"]["prompt_tokens"]

    hostile = [{"role": "user", "content": "<|im_end|>"}]
    empty = [{"role": "user", "content": ""}]
    assert num_tokens(hostile) == num_tokens(empty) + 1  # which is why they are sent as below
    assert num_tokens(plain(hostile)) == num_tokens(empty) + len("< |im_end|>")


def test_a_prompt_longer_than_its_context_gets_no_answer_and_the_others_do(tiny):
    long = [{"role": "user", "content": "x" * 7_000}]
    short, none = tiny.write([CHAT, long], 3)
    assert short is not None
    assert none is None


def test_only_who_has_the_key_is_answered(tiny):
    tiny.check()
    url = tiny._running()._server._client.place + "/chat/completions"
    assert url.startswith("http://127.0.0.1:")
    assert httpx2.post(url, json={"messages": CHAT, "max_tokens": 1}, trust_env=False).status_code == 401


def test_the_process_ends_with_close_and_with_a_parent_that_is_killed(weights):
    program = (
        "import sys, time; from pathlib import Path; from codezero.config import EvaluatorConfig\n"
        "from codezero.evaluate.backends.llama_cpp import LlamaCppBackend\n"
        f"made = LlamaCppBackend(EvaluatorConfig(), Path({str(weights)!r}), 1)\n"
        "made.write([[{'role': 'user', 'content': 'x'}]], 1); print(made._process.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.kill()
    wait_until_gone([child])

    made = LlamaCppBackend(EvaluatorConfig(), weights, 1)
    made.write([CHAT], 1)
    child = made._process.pid
    made.close()
    assert made._process is None
    wait_until_gone([child])


def test_a_file_that_is_no_model_is_an_error_that_says_what_to_do(weights, tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + bytes(100))
    made = LlamaCppBackend(EvaluatorConfig(), tmp_path / "bad.gguf", 1)
    with pytest.raises(EvaluatorError, match=r"bad\.gguf in llama\.cpp did not start .*evaluator\.backend=") as bad:
        made.check()
    assert f"`{checkout.COMMAND} models verify NAME`" in str(bad.value)
    assert made._process is None


STAND_IN = """
import json, os, sys, threading, time
from http.server import BaseHTTPRequestHandler, HTTPServer
json.loads(sys.stdin.readline())
with open({starts!r}, "a") as file:
    file.write("x")
starts = os.path.getsize({starts!r})
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        {on_post}
        raw = json.dumps({{"choices": [{{"message": {{"content": "start %d" % starts}}}}]}}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(raw))); self.end_headers()
        self.wfile.write(raw)
    def log_message(self, *_): pass
server = HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(json.dumps({{"url": "http://127.0.0.1:%d" % server.server_port}}), flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def stand_in(tmp_path, on_post, **settings):
    """A backend whose process is a program with no model; `on_post` runs before each of its answers."""
    script = tmp_path / "server.py"
    script.write_text(STAND_IN.format(starts=str(tmp_path / "starts"), on_post=on_post))
    made = LlamaCppBackend(EvaluatorConfig(**settings), Path("none.gguf"), 1, [sys.executable, str(script)])
    try:
        yield made
    finally:
        made.close()


def num_starts(tmp_path):
    return (tmp_path / "starts").stat().st_size


def test_a_process_killed_in_the_middle_of_an_answer_is_started_again_and_the_answer_comes(tmp_path):
    asked = tmp_path / "asked"
    with stand_in(tmp_path, f"open({str(asked)!r}, 'w').close(); time.sleep(60 if starts == 1 else 0)") as made:
        found = []
        asking = threading.Thread(target=lambda: found.append(made.write([CHAT], 1)))
        asking.start()
        wait_until(asked.exists)
        os.kill(made._process.pid, signal.SIGKILL)
        asking.join(120)
        assert found == [["start 2"]]


def test_a_process_that_dies_of_every_question_is_given_up_for_this_time(tmp_path):
    with stand_in(tmp_path, "os._exit(1)", retries=2) as made:
        with pytest.raises(EvaluatorError, match="cannot be asked"):
            made.write([CHAT], 1)
        assert num_starts(tmp_path) == 3


def test_a_process_that_hangs_is_ended_and_the_next_question_finds_a_new_one(tmp_path):
    with stand_in(tmp_path, "time.sleep(60 if starts == 1 else 0)", timeout_s=6.0) as made:
        with pytest.raises(EvaluatorError, match=r"no complete reply in 6 s"):
            made.write([CHAT], 1)
        assert made.write([CHAT], 1) == ["start 2"]


@pytest.mark.parametrize(
    "program",
    ["", "print('no JSON')", "import sys; sys.exit('boom \\x1b[2J')", "print('{\"url\": 5}')", "print('{}')"],
    ids=["ends at once", "no JSON", "fails", "wrong type", "no address"],
)
def test_a_program_that_does_not_start_is_an_error_of_one_plain_line(tmp_path, program):
    made = LlamaCppBackend(EvaluatorConfig(), Path("none.gguf"), 1, [sys.executable, "-c", program])
    with pytest.raises(EvaluatorError, match="did not start") as caught:
        made.check()
    assert str(caught.value).isprintable()
    assert made._process is None


def test_a_process_that_the_machine_does_not_start_is_an_error_of_the_judge():
    made = LlamaCppBackend(EvaluatorConfig(), Path("none.gguf"), 1, ["/nowhere/python"])
    with pytest.raises(EvaluatorError, match="cannot be started: No such file or directory; free"):
        made.write([CHAT], 1)


@pytest.mark.slow
@pytest.mark.real_model
def test_the_real_judge_ranks_a_reference_above_a_stub_in_one_process_and_in_the_other():
    pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: pip install codezero[llama-cpp]")
    name, home = "Qwen2.5-Coder-0.5B-Instruct", "~/.cache/codezero"
    try:
        weights, folder = store.weight_file(name, home), store.prepare(name, home)
    except ModelError as error:
        pytest.skip(str(error))
    config = EvaluatorConfig()
    outside = LlamaCppBackend(config, weights, torch.get_num_threads())
    inside = TransformersBackend(load_model(name, folder, torch.device("cpu"), torch.float32), config)
    chats = [
        prompt.review_messages(question, tests, code)
        for question, tests, reference, stub in PAIRS
        for code in (reference, stub)
    ]
    try:
        outside.check()
        for backend in (outside, inside):
            found = [yes for yes, _ in backend.choose(chats)]
            assert all(good > stub for good, stub in zip(found[::2], found[1::2], strict=True)), found
    finally:
        outside.close()


PAIRS = [
    (
        "Write a function add(a, b) that returns the sum of a and b.",
        "assert add(1, 2) == 3\nassert add(-1, 1) == 0",
        "def add(a, b):\n    return a + b",
        "def add(a, b):\n    return None",
    ),
    (
        "Write a function is_even(n) that tells whether n is even.",
        "assert is_even(4) is True\nassert is_even(7) is False",
        "def is_even(n):\n    return n % 2 == 0",
        "def is_even(n):\n    return None",
    ),
    (
        "Write a function count_vowels(text) that counts the vowels in text.",
        "assert count_vowels('hello') == 2\nassert count_vowels('') == 0",
        "def count_vowels(text):\n    return sum(c in 'aeiou' for c in text)",
        "def count_vowels(text):\n    return None",
    ),
]
