"""The vLLM engine against a stand-in for its server: what is started and sent, and what wrong answers lead to. The
tests of all engines, in `test_engines.py`, have it sample too. No real vLLM was at hand (`docs/tested.md`)."""

import asyncio
import hashlib
import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psutil
import pytest
import torch
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from safetensors import SafetensorError
from safetensors.torch import load_file

from codezero.config import RolloutEngine, Transfer
from codezero.errors import RolloutError, Stopping
from codezero.llm import replies, vllm_engine, vllm_server
from codezero.llm.replies import SamplerFailed
from codezero.llm.vllm_engine import VllmEngine
from codezero.llm.vllm_server import serve_options
from codezero.rollouts.engine import RemoteEngine
from codezero.rollouts.snapshots import Snapshots
from codezero.runtime import keeper
from tests import vllm_stand_in
from tests.builders import save_tiny, tiny_model
from tests.commands import ROOT
from tests.processes import is_alive, wait_until_gone
from tests.rollout_servers import rollout_server, sampler
from tests.unit.llm.sampling import PROMPTS, plain_logprobs
from tests.unit.llm.test_engines import adapted, draw

STAND_IN = [sys.executable, vllm_stand_in.__file__]


class StandIn:
    def __init__(self, tmp_path, fault):
        self.folder, self.journal = tmp_path / "engine", tmp_path / "journal"
        self.engine = VllmEngine(
            Path(save_tiny(tmp_path / "model")),
            self.folder,
            cache_bytes=1 << 20,
            command=[*STAND_IN, self.journal, fault],
        )
        self.sample = self.engine.sample_groups, adapted(tiny_model())

    def notes(self):
        return [json.loads(line) for line in self.journal.read_text().splitlines()]

    def starts(self):
        return [note for note in self.notes() if "start" in note]

    def calls(self):
        return [note for note in self.notes() if "path" in note]


@contextmanager
def stand_in(tmp_path, fault="none"):
    """`fault` is "none" for a server that always says the token 7, and "" for one with the model."""
    children = set(psutil.Process().children())
    made = StandIn(tmp_path, fault)
    try:
        yield made
    finally:
        made.engine.close()
    assert set(psutil.Process().children()) == children  # no zombie either
    assert not [note["pid"] for note in made.starts() if is_alive(note["pid"])]


# the server that is started


def test_the_command_line_of_a_server_with_adapters():
    assert serve_options(Path("/m"), Path("/s/socket"), torch.bfloat16, 16, 1 << 30) == [
        "serve", "/m",
        "--enable-sleep-mode", "--disable-log-stats", "--disable-uvicorn-access-log", "--enable-lora",
        "--served-model-name", "policy",
        "--uds", "/s/socket",
        "--dtype", "bfloat16",
        "--generation-config", "vllm",
        "--logprobs-mode", "processed_logprobs",
        "--max-model-len", "auto",
        "--kv-cache-memory-bytes", "1073741824",
        "--gpu-memory-utilization", "0.01",
        "--max-lora-rank", "16",
    ]  # fmt: skip


@pytest.mark.parametrize(("rank", "most"), [(1, "8"), (8, "8"), (9, "16"), (300, "320"), (600, "600")])
def test_a_server_holds_adapters_of_the_next_rank_that_vllm_has(rank, most):
    assert serve_options(Path("m"), Path("s"), torch.float32, rank, 1)[-2:] == ["--max-lora-rank", most]


def test_without_adapters_none_are_enabled():
    words = serve_options(Path("m"), Path("s"), torch.float32, 0, 1)
    assert "--enable-lora" not in words
    assert "--max-lora-rank" not in words


def test_only_this_user_reaches_the_server_and_its_weights(tmp_path):
    with stand_in(tmp_path) as made:
        draw(made.sample)
        (start,) = made.starts()
        room = Path(start["start"][start["start"].index("--uds") + 1]).parent
        assert start["room"] == 0
        assert [call["mode"] for call in made.calls() if call["path"] == "/v1/load_lora_adapter"] == [0]
    assert not room.exists()


# what it is sent


def test_it_wakes_takes_the_adapter_samples_and_sleeps_each_time(tmp_path):
    with stand_in(tmp_path) as made:
        draw(made.sample, PROMPTS[:1])
        draw(made.sample, PROMPTS[:1])
        calls = [(call["path"], call["asleep"]) for call in made.calls()]
        first = [("/v1/load_lora_adapter", False), ("/v1/completions", False), ("/sleep", False)]
        then = [("/wake_up", True), first[0], ("/v1/unload_lora_adapter", False), *first[1:]]
        assert calls == first + then
        loads = [call["body"]["lora_name"] for call in made.calls() if call["path"] == "/v1/load_lora_adapter"]
        models = [call["body"]["model"] for call in made.calls() if call["path"] == "/v1/completions"]
        dropped = [call["body"]["lora_name"] for call in made.calls() if call["path"] == "/v1/unload_lora_adapter"]
        assert loads == models == ["update-1", "update-2"]
        assert dropped == ["update-1"]
        assert len(made.starts()) == 1


def test_the_adapter_reaches_the_server_whole(tmp_path):
    with stand_in(tmp_path) as made:
        draw(made.sample)
        file = made.folder / "weights" / "adapter_model.safetensors"
        (load,) = [call for call in made.calls() if call["path"] == "/v1/load_lora_adapter"]
        assert load["files"] == {file.name: hashlib.sha256(file.read_bytes()).hexdigest()}
        own = {name.replace(".default", ""): one for name, one in made.sample[1].named_parameters() if "lora_" in name}
        sent = load_file(file)
        assert sent.keys() == own.keys()
        assert all(torch.equal(sent[name], own[name]) for name in own)
        config = json.loads((file.parent / "adapter_config.json").read_text())
        assert (config["r"], config["lora_alpha"], config["peft_type"]) == (4, 12, "LORA")


def test_each_prompt_is_asked_for_once_with_seeds_of_its_own(tmp_path):
    with stand_in(tmp_path) as made:
        draw(made.sample, num_generations=3, end_ids=[5, 258], temperature=0.7)
        bodies = sorted(
            (call["body"] for call in made.calls() if "prompt" in call["body"]), key=lambda one: one["seed"]
        )
        first = bodies[0]["seed"]
        assert [(body.pop("seed") - first, body.pop("prompt")) for body in bodies] == [
            (0, PROMPTS[0]), (3, PROMPTS[1]), (6, PROMPTS[2])
        ]  # fmt: skip
        assert bodies == [
            {
                "model": "update-1", "n": 3, "max_tokens": 8, "temperature": 0.7, "top_p": 1.0, "top_k": 0,
                "ignore_eos": True, "stop_token_ids": [5, 258], "logprobs": 0, "return_token_ids": True,
                "return_tokens_as_token_ids": True,
            }
        ] * 3  # fmt: skip


def test_without_adapters_it_gets_all_weights_and_is_asked_for_the_policy(tmp_path):
    with stand_in(tmp_path, "") as made:
        model = tiny_model(seed=5)
        for group in draw((made.sample[0], model)):
            for tokens in group:
                gaps = torch.tensor(tokens.logprobs) - plain_logprobs(model, tokens)
                assert gaps.abs().max() < 1e-3
        reload, ask, *_ = made.calls()
        assert reload["path"] == "/collective_rpc"
        assert reload["body"]["method"] == "reload_weights"
        assert list(reload["files"]) == ["model.safetensors"]
        assert ask["body"]["model"] == "policy"


def test_a_model_that_gets_adapters_gets_another_server(tmp_path):
    with stand_in(tmp_path) as made:
        draw((made.sample[0], tiny_model()))
        draw(made.sample)
        assert ["--enable-lora" in start["start"] for start in made.starts()] == [False, True]


def test_a_rollout_server_samples_by_it_with_a_trainers_adapters(tmp_path):
    with stand_in(tmp_path, "") as made:
        trained = made.sample[1]
        what = sampler(tiny_model(), made.engine.sample_groups, RolloutEngine.vllm)
        with rollout_server(what) as server:
            remote = RemoteEngine([server], Snapshots(trained, tmp_path / "w", Transfer.auto), local=None)
            groups = draw((remote.sample_groups, trained))
    for tokens in (tokens for group in groups for tokens in group):
        gaps = torch.tensor(tokens.logprobs) - plain_logprobs(trained, tokens)
        assert gaps.abs().max() < 0.05  # adapters are sent in bfloat16


# vLLM's own


def test_an_answer_that_vllm_made_is_read(tmp_path):
    with stand_in(tmp_path, "recorded") as made:
        (group,) = draw(made.sample, PROMPTS[:1], end_ids=[258])
    assert [(tokens.completion_ids, tokens.logprobs) for tokens in group] == [
        ((65, 66, 258), (-0.25, -0.25, -0.25)), ((65, 66, 258), (-0.75, -0.75, -0.75))
    ]  # fmt: skip


def test_the_stand_in_answers_with_the_fields_of_vllm():
    theirs, ours = json.loads(vllm_stand_in.RECORDED.read_text()), vllm_stand_in.answer([([65], [-1.0])], "m", [5])
    assert theirs.keys() == ours.keys()
    assert theirs["choices"][0].keys() == ours["choices"][0].keys()
    assert theirs["choices"][0]["logprobs"].keys() == ours["choices"][0]["logprobs"].keys()


def test_its_pins_are_of_what_the_project_wants():
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has none")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "scripts" / "constraints-vllm.txt").read_text().splitlines()
    pins = {line.split("==")[0]: line.split("==")[1] for line in lines if not line.startswith("#")}
    wanted = [Requirement(line) for line in project["dependencies"] + project["optional-dependencies"]["vllm"]]
    assert not [one for one in wanted if pins[canonicalize_name(one.name)] not in one.specifier]
    assert f"TORCH_VERSION={pins['torch']}\n" in (ROOT / "scripts" / "setup.sh").read_text()


# when it fails


def short_until_told(monkeypatch, module, name, limit_s):
    """Has the first server end at this limit; the next one may take as long as ever on a busy machine."""
    usual_s, warning = getattr(module, name), replies.logger.warning

    def told(*arguments):
        monkeypatch.setattr(module, name, usual_s)
        warning(*arguments)

    monkeypatch.setattr(module, name, limit_s)
    monkeypatch.setattr(replies.logger, "warning", told)


WITH_THE_SERVER = ("garbage", "an error", "dies in the middle", "hangs")
"""Faults that are tried with the whole engine; of the others it matters only that the answer is refused."""


@pytest.mark.parametrize("fault", [name for name in vllm_stand_in.FAULTS if name not in WITH_THE_SERVER])
def test_an_answer_that_cannot_be_is_refused(fault):
    async def pieces(said):
        yield (said if isinstance(said, str) else json.dumps(said)).encode()

    def answer(request):
        status, said = vllm_stand_in.FAULTS[fault](None, json.loads(request.content))
        return httpx2.Response(status, content=pieces(said))

    async def complete():
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer), base_url="http://vllm") as client:
            body = {"prompt": [1, 2], "n": 2, "max_tokens": 8, "stop_token_ids": [0]}
            await vllm_server.complete(client, [body], tiny_model(), None)

    with pytest.raises(SamplerFailed):
        asyncio.run(complete())


@pytest.mark.parametrize("fault", [*WITH_THE_SERVER, "refuses the adapter", "does not start", "starts for ever"])
def test_a_server_that_fails_once_costs_a_warning_and_the_rollouts_come(tmp_path, fault, caplog, monkeypatch):
    if fault == "hangs":
        short_until_told(monkeypatch, vllm_server, "ANSWER_S", 1.0)
    if fault == "starts for ever":
        short_until_told(monkeypatch, vllm_engine, "START_S", 6.0)
    with stand_in(tmp_path, f"once {fault}") as made:
        groups = draw(made.sample)
        assert len(made.starts()) == 2
    assert [[tokens.completion_ids for tokens in group] for group in groups] == [[(7,) * 8] * 2] * 3
    # asyncio may have a line too: where an answer meets its cancellation, anyio sets a future that has ended
    assert len([record for record in caplog.records if record.name == replies.logger.name]) == 1
    assert "rollout.engine=transformers" in caplog.text
    assert "\x1b" not in caplog.text


def test_a_server_that_never_starts_is_given_up_with_what_it_said(tmp_path):
    with stand_in(tmp_path, "does not start") as made:
        with pytest.raises(RolloutError, match=r"in 3 tries .*CUDA out of memory.*the extra vllm") as caught:
            draw(made.sample)
        assert str(caught.value).isprintable()
        assert len(made.starts()) == replies.TRIES


def test_without_vllm_it_says_what_to_install(tmp_path):
    engine = VllmEngine(Path(save_tiny(tmp_path / "model")), tmp_path, cache_bytes=1)
    with pytest.raises(RolloutError, match=r"No module named '?vllm.*install the extra vllm"):
        draw((engine.sample_groups, adapted(tiny_model())))


def test_a_server_that_ends_between_two_calls_is_started_again(tmp_path):
    with stand_in(tmp_path) as made:
        draw(made.sample)
        psutil.Process(made.starts()[0]["pid"]).kill()
        wait_until_gone([made.starts()[0]["pid"]])
        draw(made.sample)
        assert len(made.starts()) == 2


def test_a_stop_leaves_a_server_that_samples_again(tmp_path):
    def stop(done, total):
        raise Stopping("the trainer is gone")

    with stand_in(tmp_path) as made:
        with pytest.raises(Stopping):
            draw(made.sample, on_step=stop)
        assert len(draw(made.sample)) == 3
        assert len(made.starts()) == 1


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_an_error_that_says_what_to_do(tmp_path, monkeypatch, error):
    def full(*_, **__):
        raise error

    with stand_in(tmp_path) as made:
        monkeypatch.setattr(made.sample[1], "save_pretrained", full)
        with pytest.raises(RolloutError, match=r"cannot write the weights .*No space left on device; free some space"):
            draw(made.sample)


def test_the_server_and_its_processes_end_with_a_node_that_is_killed(tmp_path):
    program = (
        "import sys; from pathlib import Path; from tests.unit.llm import test_vllm as t\n"
        f"made = t.StandIn(Path({str(tmp_path)!r}), 'none'); t.draw(made.sample)\n"
        "print('on', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout.readline() == "on\n"
        children = [child.pid for child in psutil.Process(parent.pid).children(recursive=True)]
        assert len(children) == 2
        parent.kill()
    wait_until_gone(children)


def test_a_keeper_ends_what_its_command_has_left_behind(tmp_path):
    (tmp_path / "room").mkdir()
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    )
    program = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {stubborn!r}], stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print(child.pid, flush=True)"
    )
    command = [sys.executable, keeper.__file__, str(tmp_path / "room"), sys.executable, "-c", program]
    kept = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    child = int(kept.stdout.readline())
    assert kept.wait(120) == 0  # though its own input is open
    wait_until_gone([child])
    assert not (tmp_path / "room").exists()
    kept.stdin.close()
    kept.stdout.close()


def test_a_keeper_that_is_signalled_still_ends_its_command_with_its_parent():
    command = [
        sys.executable,
        keeper.__file__,
        "",
        sys.executable,
        "-c",
        "print(1, flush=True); __import__('time').sleep(600)",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as kept:
        assert kept.stdout.readline() == "1\n"
        children = [child.pid for child in psutil.Process(kept.pid).children()]
        kept.terminate()
        time.sleep(0.2)  # so that the signal comes first
        kept.stdin.close()
        wait_until_gone(children)


def test_prompts_that_are_done_are_told(tmp_path):
    steps = []
    with stand_in(tmp_path) as made:
        draw(made.sample, on_step=lambda *step: steps.append(step), max_new_tokens=6)
    assert steps == [(2, 6), (4, 6), (6, 6)]


def test_samples_are_whole_groups_of_the_prompts(tmp_path):
    with stand_in(tmp_path) as made:
        (group,) = draw(made.sample, [[1, 2]], 4, temperature=0.0)
        assert len(group) == 4
        assert [call["body"]["n"] for call in made.calls() if "prompt" in call["body"]] == [1]
