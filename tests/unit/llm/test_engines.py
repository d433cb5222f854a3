"""All rollout engines in the same tests; llama.cpp's files and the supervision of its process."""

import contextlib
import copy
import json
import subprocess
import sys
from pathlib import Path

import gguf
import numpy as np
import psutil
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

from codezero.config import RolloutConfig, RolloutEngine, TrainConfig, Transfer
from codezero.errors import ConfigError, ModelError, RolloutError
from codezero.llm import engines as all_engines
from codezero.llm import llama_engine, llama_sampler, replies, sample
from codezero.llm.engines import make_engine
from codezero.llm.llama_engine import LlamaCppEngine
from codezero.llm.llama_files import write_base
from codezero.llm.vllm_engine import VllmEngine
from codezero.rollouts.engine import RemoteEngine
from codezero.rollouts.snapshots import Snapshots
from codezero.train.method import active_lora, add_lora, apply_lora
from tests import vllm_stand_in
from tests.builders import save_tiny, tiny_model
from tests.commands import ROOT
from tests.fakes import files_of_at_most
from tests.processes import is_alive, wait_until_gone
from tests.rollout_servers import rollout_server, sampler
from tests.unit.llm.sampling import PROMPTS, plain_logprobs, sample_request

SHAPE = {"intermediate_size": 64}
"""Rows of Q8_0 are multiples of 32 long."""


def rounded(folder):
    """Gives the folder the weights that its Q8_0 copy has, so that only arithmetic differs."""
    file = Path(folder) / "model.safetensors"
    weights = load_file(file)
    kind = gguf.GGMLQuantizationType.Q8_0
    for name, weight in weights.items():
        if weight.ndim == 2:
            packed = gguf.quants.quantize(weight.numpy(), kind)
            weights[name] = torch.from_numpy(gguf.quants.dequantize(packed, kind).astype(np.float32))
    save_file(weights, file, {"format": "pt"})
    return folder


def adapted(model):
    """The model with a random adapter that changes what it says."""
    made = apply_lora(model, TrainConfig(lora_r=4, lora_alpha=12), 0)
    torch.manual_seed(1)
    for name, weight in made.named_parameters():
        if "lora_B" in name:
            weight.data.normal_(0, 0.3)
    return made


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """(sample_groups of llama.cpp, a peft model with the same weights)"""
    pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: pip install codezero[llama-cpp]")
    torch.set_num_threads(1)
    folder = rounded(save_tiny(tmp_path_factory.mktemp("model"), **SHAPE))
    engine = LlamaCppEngine(Path(folder), tmp_path_factory.mktemp("engine"), cache_bytes=1 << 28)
    model = type(tiny_model()).from_pretrained(folder)
    return engine.sample_groups, adapted(model)


@pytest.fixture(scope="module")
def engines(llama, tmp_path_factory):
    base = copy.deepcopy(llama[1]).unload()
    folder = tmp_path_factory.mktemp("vllm")
    base.save_pretrained(folder / "model")
    stand_in = [sys.executable, vllm_stand_in.__file__, str(folder / "journal"), ""]
    vllm = VllmEngine(folder / "model", folder, cache_bytes=1 << 28, command=stand_in)
    with rollout_server(sampler(copy.deepcopy(base))) as server:
        snapshots = Snapshots(llama[1], tmp_path_factory.mktemp("weights"), Transfer.auto)
        yield {
            "llama_cpp": llama,
            "transformers": (sample.sample_groups, llama[1]),
            "remote": (RemoteEngine([server], snapshots, local=None).sample_groups, llama[1]),
            "vllm": (vllm.sample_groups, llama[1]),
        }
    vllm.close()


@pytest.fixture(params=["llama_cpp", "transformers", "remote", "vllm"])
def engine(request, engines):
    return engines[request.param]


def draw(engine, prompts=PROMPTS, num_generations=2, end_ids=(), **settings):
    function, model = engine
    return function(model, sample_request(prompts, num_generations, end_ids, **settings))


def assert_logprobs(engine, **params):
    """They are those of the adapted model at the temperature."""
    gaps = []
    for group in draw(engine, num_generations=3, max_new_tokens=16, **params):
        for tokens in group:
            wanted = plain_logprobs(engine[1], tokens, params.get("temperature", 1.0))
            gaps += (torch.tensor(tokens.logprobs) - wanted).abs().tolist()
    assert len(gaps) == 3 * 3 * 16
    assert np.median(gaps) < 0.02  # llama.cpp rounds activations to 8 bits
    assert max(gaps) < 0.2


@pytest.mark.parametrize("params", [{}, {"temperature": 0.7}])
def test_logprobs_are_those_of_the_adapted_model_at_the_temperature(engine, params):
    assert_logprobs(engine, **params)


@pytest.mark.parametrize("name", ["llama_cpp", "transformers"])
def test_logprobs_are_those_before_top_p_and_top_k(engines, name):
    assert_logprobs(engines[name], temperature=1.3, top_p=0.8, top_k=40)


@pytest.mark.parametrize("changed", [{"top_p": 0.8}, {"top_k": 40}])
def test_an_engine_whose_logprobs_come_after_these_is_refused_with_them(changed):
    with pytest.raises(ConfigError, match=r"engine=vllm .*use rollout\.top_p=1 and rollout\.top_k=0"):
        RolloutConfig(engine=RolloutEngine.vllm, **changed)


def test_the_adapter_is_applied_and_not_only_read(llama):
    model = llama[1]
    tokens = draw(llama, temperature=0.0)[0][0]
    with model.disable_adapter():
        base = plain_logprobs(model, tokens)
    assert (torch.tensor(tokens.logprobs) - base).abs().median() > 0.2


def test_each_call_samples_with_the_adapter_of_its_time(llama):
    model = llama[1]
    state = {name: weight.detach().clone() for name, weight in model.named_parameters() if "lora_B" in name}
    before = draw(llama, temperature=0.0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.mul_(-1)
    after = draw(llama, temperature=0.0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name in state:
                weight.copy_(state[name])
    assert before != after
    assert draw(llama, temperature=0.0) == before  # restored, as after a kill


@pytest.mark.parametrize("name", ["llama_cpp", "transformers"])
def test_a_role_samples_with_its_own_adapters_or_with_none(engines, name):
    """As a test writer and its solver do, which have adapters of their own on one base."""
    function, own = engines[name]
    model = copy.deepcopy(own)
    add_lora(model, "other", TrainConfig(lora_r=2), seed=0)
    for weight_name, weight in model.named_parameters():
        if "lora_B.other" in weight_name:
            torch.nn.init.normal_(weight, std=0.5, generator=torch.Generator().manual_seed(0))
    engine = function, model
    assert_logprobs(engine)
    with active_lora(model, "other"):
        assert_logprobs(engine)
    with model.disable_adapter():
        assert_logprobs(engine)


def test_end_token_is_kept_and_nothing_follows_it(engine):
    end_ids = list(range(0, 259, 4))
    rows = [tokens for group in draw(engine, PROMPTS, 4, end_ids, max_new_tokens=12) for tokens in group]
    assert len({len(tokens.completion_ids) for tokens in rows}) > 2
    for tokens in rows:
        *before, last = tokens.completion_ids
        assert not set(before) & set(end_ids)
        assert last in end_ids or len(tokens.completion_ids) == 12
        assert len(tokens.logprobs) == len(tokens.completion_ids)


def test_attempts_of_a_prompt_are_one_prompt_read_once_and_continued_apart(engine):
    groups = draw(engine, num_generations=4, temperature=0.0)
    assert [tokens.prompt_ids for group in groups for tokens in group] == [tuple(p) for p in PROMPTS for _ in range(4)]
    assert all(len({tokens.completion_ids for tokens in group}) == 1 for group in groups)
    drawn = draw(engine, num_generations=4)
    assert all(len({tokens.completion_ids for tokens in group}) > 1 for group in drawn)


def test_same_generator_state_gives_the_same_samples_and_another_one_does_not(engine):
    first, again, other = (draw(engine, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_no_prompts_give_no_groups_and_progress_is_told(engine, engines):
    assert draw(engine, []) == []
    steps = []
    draw(engine, [[1, 2]], max_new_tokens=4, on_step=lambda done, total: steps.append((done, total)))
    told = {"vllm": [(4, 4)]}  # as prompts end
    (name,) = [name for name, one in engines.items() if one is engine]
    if name != "remote":  # whose steps are looked at twice a second
        assert steps == told.get(name, [(1, 4), (2, 4), (3, 4)])


def test_an_engine_remembers_from_call_to_call_how_much_memory_holds(llama, monkeypatch):
    tried = []

    def small(model, request):
        tried.append(len(request.prompts) * request.num_generations)
        if tried[-1] > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return sample.sample_groups(model, request)

    monkeypatch.setattr(all_engines, "sample_groups", small)
    made = make_engine(RolloutEngine.transformers, Path(), Path(), 0)
    draw((made, llama[1]))
    first = len(tried)
    draw((made, llama[1]))
    assert max(tried[:first]) > max(tried[first:]) == 2


def test_more_completions_than_fit_at_a_time_are_sampled_in_turns(llama):
    prompts = [[i, i + 1] for i in range(40)]
    groups = draw(llama, prompts, 4, max_new_tokens=2, temperature=0.0)
    assert [len(group) for group in groups] == [4] * 40
    assert len(prompts) * 4 > llama_sampler.MAX_ROWS
    alone = draw(llama, prompts[-1:], 4, max_new_tokens=2, temperature=0.0)
    assert [t.completion_ids for t in groups[-1]] == [t.completion_ids for t in alone[0]]


@pytest.mark.parametrize(
    ("params", "possible"),
    [({"top_k": 1}, {2}), ({"top_k": 2}, {2, 3}), ({"top_p": 0.5}, {2}), ({"top_p": 0.7}, {2, 3}), ({}, {0, 1, 2, 3})],
)
def test_drawn_tokens_and_logprobs_follow_the_probabilities(params, possible):
    """As `llm.sample.draw`."""
    logits = np.tile(np.log(np.array([0.1, 0.1, 0.6, 0.2], np.float32)), (2000, 1))
    asked = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, **params}
    tokens, logprobs = llama_sampler.draw(logits, request(**asked), np.random.default_rng(0))
    assert set(tokens) == possible
    assert np.exp(logprobs[tokens.index(2)]) == pytest.approx(0.6)
    if not params:
        assert np.allclose(np.bincount(tokens) / 2000, [0.1, 0.1, 0.6, 0.2], atol=0.04)


def request(**values):
    shipped = {
        "base": "", "adapter": None, "prompts": [], "num_generations": 1, "max_new_tokens": 1, "temperature": 1.0,
        "top_p": 1.0, "top_k": 0, "end_ids": [], "seed": 0, "threads": 1, "memory_bytes": 0,
    }  # fmt: skip
    return llama_sampler.Request(**{**shipped, **values})


LLAMA = {
    "vocab_size": 259, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "initializer_range": 0.2,
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        (LlamaForCausalLM, LlamaConfig(**LLAMA)),
        (LlamaForCausalLM, LlamaConfig(**LLAMA, attention_bias=True)),
        (Qwen3ForCausalLM, Qwen3Config(**LLAMA)),
    ],
    ids=["llama", "llama with biases", "qwen3"],
)
def test_other_models_are_written_as_llama_cpp_reads_them(tmp_path, kind, config):
    pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: pip install codezero[llama-cpp]")
    torch.manual_seed(0)
    made = kind(config)
    for name, weight in made.named_parameters():
        if name.endswith("bias"):  # which begin as 0
            torch.nn.init.normal_(weight)
    made.save_pretrained(tmp_path / "model")
    folder = Path(rounded(tmp_path / "model"))
    engine = LlamaCppEngine(folder, tmp_path / "engine", cache_bytes=1 << 28)
    model = adapted(kind.from_pretrained(folder).eval())
    for group in draw((engine.sample_groups, model), num_generations=2, max_new_tokens=12):
        for tokens in group:
            wanted = plain_logprobs(model, tokens)
            assert (torch.tensor(tokens.logprobs) - wanted).abs().median() < 0.03


def with_settings(folder, **changes):
    """Saves a small Llama with these entries in its config.json; None takes one out."""
    LlamaForCausalLM(LlamaConfig(**LLAMA)).save_pretrained(folder)
    path = folder / "config.json"
    entries = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in entries.items() if value is not None}))
    return folder


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model_type": "gemma3_text"}, "knows no gemma3_text, only plain qwen2, qwen3, llama"),
        ({"hidden_act": "gelu"}, "knows llama without hidden_act gelu only"),
        ({"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1.0}}, "without rope_type linear"),
        ({"rope_parameters": None, "rope_scaling": {"type": "linear", "factor": 2.0}}, "without rope_type linear"),
    ],
)
def test_a_model_that_it_cannot_compute_is_an_error_that_says_what_to_do(tmp_path, changes, says):
    with pytest.raises(ModelError, match=rf"{says}.*: set rollout\.engine=transformers"):
        write_base(with_settings(tmp_path / "a", **changes), tmp_path / "a.gguf")


def test_rows_that_q8_0_does_not_take_are_an_error_that_says_what_to_do(tmp_path):
    folder = Path(save_tiny(tmp_path / "a", intermediate_size=48))
    with pytest.raises(ModelError, match=r"rows of 48 numbers: set rollout\.engine=transformers"):
        write_base(folder, tmp_path / "a.gguf")


@pytest.mark.parametrize(("entries", "base"), [({}, 10_000.0), ({"rope_theta": 5e5}, 500_000.0)])
def test_a_config_in_the_keys_of_older_models_or_without_a_rotation_has_the_usual_one(tmp_path, entries, base):
    write_base(with_settings(tmp_path / "a", rope_parameters=None, **entries), tmp_path / "a.gguf")
    field = gguf.GGUFReader(tmp_path / "a.gguf").get_field("llama.rope.freq_base")
    assert field.contents() == base


def test_the_base_is_written_once_and_again_where_weights_have_changed(tmp_path):
    folder = Path(save_tiny(tmp_path / "model", **SHAPE))
    path = tmp_path / "base.gguf"
    write_base(folder, path)
    first = path.stat().st_mtime_ns
    write_base(folder, path)
    assert path.stat().st_mtime_ns == first
    tiny_model(3, **SHAPE).save_pretrained(folder)
    write_base(folder, path)
    assert path.stat().st_mtime_ns != first
    whole = path.read_bytes()
    for damaged in (b"GGUF", whole[:100] + bytes(400) + whole[500:]):
        path.write_bytes(damaged)
        write_base(folder, path)
        assert path.read_bytes() == whole


def test_a_base_that_a_full_disk_does_not_take_leaves_nothing_on_it(tmp_path):
    folder = Path(save_tiny(tmp_path / "model", **SHAPE))
    with files_of_at_most(5000), pytest.raises(RolloutError, match=r"cannot write the sampler's files"):
        LlamaCppEngine(folder, tmp_path / "sampler", cache_bytes=0)
    assert list((tmp_path / "sampler").iterdir()) == []


STAND_IN = """
import json, os, sys, time
asked = json.loads(sys.stdin.readline())
with open({starts!r}, "a") as file:
    file.write("x")
starts = os.path.getsize({starts!r})
{program}
num = len(asked["prompts"]) * asked["num_generations"]
print(json.dumps({{"type": "Done", "ids": [[7]] * num, "logprobs": [[-1.0]] * num}}), flush=True)
time.sleep(60)
"""


@contextlib.contextmanager
def stand_in(tmp_path, program):
    """An engine whose process is a program without a model; it lingers, so that ending it is the engine's part."""
    script = tmp_path / "sampler.py"
    script.write_text(STAND_IN.format(starts=str(tmp_path / "starts"), program=program))
    folder = Path(save_tiny(tmp_path / "model", **SHAPE))
    engine = LlamaCppEngine(folder, tmp_path, cache_bytes=0, command=[sys.executable, str(script)])
    children = set(psutil.Process().children())
    yield engine.sample_groups, adapted(tiny_model(**SHAPE))
    assert set(psutil.Process().children()) == children  # no zombie either


@pytest.mark.parametrize(
    "program",
    [
        "starts == 1 and os._exit(1)",
        "starts == 1 and os.kill(os.getpid(), 9)",
        "starts == 1 and os.close(1) or starts == 1 and sys.exit()",
        "starts == 1 and print('no JSON', flush=True)",
        "starts == 1 and (print(json.dumps({'type': 'Done', 'ids': [[7]], 'logprobs': [[]]}), flush=True), sys.exit())",
        "starts == 1 and (print(json.dumps({'type': 'Done', 'error': 'out of luck'}), flush=True), sys.exit())",
        'starts == 1 and print(\'{"type": "Done", "ids": [[7]], "logprobs": [[null]]}\', flush=True)',
    ],
    ids=["dies", "is killed", "goes silent", "no JSON", "misshapen", "says that it failed", "not finite"],
)
def test_a_process_that_fails_once_costs_a_warning_and_the_rollouts_come(tmp_path, program, caplog):
    with stand_in(tmp_path, program) as engine:
        groups = draw(engine)
    assert [[t.completion_ids for t in group] for group in groups] == [[(7,), (7,)]] * 3
    assert len(caplog.records) == 1
    assert "rollout.engine=transformers" in caplog.text


def test_a_process_that_always_fails_is_given_up_with_what_it_said(tmp_path):
    with stand_in(tmp_path, "sys.exit('no \\x1b[2J luck')") as engine:
        with pytest.raises(RolloutError, match=r"in 3 tries .*luck.*rollout\.engine=transformers") as caught:
            draw(engine)
        assert str(caught.value).isprintable()
    assert (tmp_path / "starts").stat().st_size == replies.TRIES


def test_a_process_that_hangs_is_ended(tmp_path, monkeypatch):
    usual_s, warning = llama_engine.SILENCE_S, replies.logger.warning

    def told(*arguments):  # the next process may take as long as ever on a busy machine
        monkeypatch.setattr(llama_engine, "SILENCE_S", usual_s)
        warning(*arguments)

    monkeypatch.setattr(llama_engine, "SILENCE_S", 1.0)
    monkeypatch.setattr(replies.logger, "warning", told)
    with stand_in(tmp_path, "starts == 1 and time.sleep(60)") as engine:
        assert len(draw(engine)) == 3
    assert (tmp_path / "starts").stat().st_size == 2


def test_an_interrupt_ends_the_process_too(tmp_path):
    def interrupt(done, total):
        raise KeyboardInterrupt

    program = "print(json.dumps({'type': 'Progressed', 'done': 1, 'total': 9}), flush=True); time.sleep(60)"
    with stand_in(tmp_path, program) as engine, pytest.raises(KeyboardInterrupt):
        draw(engine, on_step=interrupt)


def test_without_memory_it_fails_in_words(llama, tmp_path):
    engine = LlamaCppEngine(
        Path(save_tiny(tmp_path / "model", **SHAPE)), tmp_path, cache_bytes=(64 << 20) - llama_engine.PROCESS_BYTES
    )
    with pytest.raises(RolloutError, match="free some memory"):
        draw((engine.sample_groups, llama[1]))


def test_the_process_ends_with_a_node_that_is_killed(llama, tmp_path):
    folder = save_tiny(tmp_path / "model", **SHAPE)
    program = (
        "import sys, time; from pathlib import Path; from tests.unit.llm import test_engines as t\n"
        f"engine = t.LlamaCppEngine(Path({folder!r}), Path({str(tmp_path)!r}), cache_bytes=1 << 30)\n"
        "model = t.adapted(t.tiny_model(**t.SHAPE))\n"
        "t.draw((engine.sample_groups, model), max_new_tokens=1900, on_step=lambda *_: print('on', flush=True))"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout.readline() == "on\n"
        children = [child.pid for child in psutil.Process(parent.pid).children()]
        assert len(children) == 1
        assert is_alive(children[0])
        parent.kill()
    wait_until_gone(children)
