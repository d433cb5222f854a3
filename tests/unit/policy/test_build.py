import json
import shutil
import sys
import threading
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from transformers import Qwen2Config

from codezero.config import Backend, RolloutEngine, TrainMethod
from codezero.config.checkout import ROOT
from codezero.config.load import load_config
from codezero.errors import ConfigError, EvaluatorError, RolloutError, StateError, TrainingError, is_outage
from codezero.evaluate import build as judging
from codezero.evaluate.build import JudgeWeights
from codezero.evaluate.judge import ModelJudge
from codezero.harness.policy import trained_in
from codezero.llm import engines, onednn
from codezero.llm.draw import SamplingParams
from codezero.llm.sample import SampleRequest
from codezero.llm.vllm_engine import VllmEngine
from codezero.observe.probes import NODE
from codezero.policy import build
from codezero.policy.build import Models
from codezero.policy.probing import build as probing
from codezero.runtime import state
from codezero.runtime.console import Console
from codezero.train.memory import QWEN_0_5B
from codezero.train.method import Room
from tests import vllm_stand_in
from tests.builders import save_tiny, task
from tests.plans import gpu_gib, planned_gib
from tests.strangers import submission
from tests.unit.evaluate.loopback import reply, serve
from tests.unit.llm import gguf_files

REQUEST = SampleRequest(
    prompts=[[1, 2]], num_generations=1, params=SamplingParams(max_new_tokens=3), end_ids=[], pad_id=0
)


def remembered_plans(monkeypatch):
    """A list of what memory is planned for from now on."""
    planned = []
    plan_training = build.plan_training

    def remember(shape, config, load, room):
        planned.append(load)
        return plan_training(shape, config, load, room)

    monkeypatch.setattr(build, "plan_training", remember)
    return planned


@pytest.mark.parametrize(
    ("settings", "num_external", "prompt_tokens"),
    [
        (["tasks=builtin", "swarm=alone", "swarm.num_external=3"], 0, 512),
        (["tasks=builtin", "swarm=native", "swarm.num_external=3"], 3, 512),
        (["swarm=native", "tasks=code_contests"], 2, 2048),
    ],
)
def test_memory_is_planned_for_peers_groups_where_there_are_peers(
    tmp_path, monkeypatch, settings, num_external, prompt_tokens
):
    planned = remembered_plans(monkeypatch)
    model = save_tiny(tmp_path / "model")
    common = [f"model.name={model}", f"evaluator.model={model}", "model.device=cpu", f"model.cache_dir={tmp_path}"]
    config = load_config([*common, "swarm.num_local=4", "train.replay=5", *settings])
    made = Models(config, tmp_path, Console())
    (load,) = planned
    assert (load.num_local, load.num_external, load.num_replayed, load.num_generations) == (4, num_external, 5, 8)
    assert load.prompt_tokens == made.prompt_tokens == prompt_tokens


def made_from(tmp_path, policy, judge, *settings):
    names = [f"model.name={policy}", f"evaluator.model={judge}", f"model.cache_dir={tmp_path}"]
    config = load_config(["preset=local", "model.device=cpu", *names, *settings])
    return config, Models(config, tmp_path, Console())


def opinions(config, made):
    judge = ModelJudge(made.judge_backend, config.evaluator)
    asked = [submission(task(), code) for code in ("def f(x): return x + 1", "pass")]
    return [opinion.p_correct for opinion in judge.judge(asked)]


def test_adapters_and_judge_share_weights_and_the_judge_does_not_see_the_adapters(tmp_path):
    model = save_tiny(tmp_path / "model")
    settings = ("train.method=lora", "evaluator.dtype=float32")
    config, made = made_from(tmp_path / "a", model, model, *settings)
    _, apart = made_from(tmp_path / "b", model, save_tiny(tmp_path / "copy"), *settings)
    shared = {p.data_ptr() for p in made.policy.model.parameters()}
    assert all(p.data_ptr() in shared for p in made.judge.model.parameters())
    assert not {p.data_ptr() for p in apart.policy.model.parameters()} & {
        p.data_ptr() for p in apart.judge.model.parameters()
    }
    before = opinions(config, made)
    adapters = [p for p in made.policy.model.parameters() if p.requires_grad]
    assert adapters
    with torch.no_grad():
        for parameter in adapters:
            parameter.add_(0.5)
    assert opinions(config, made) == before == opinions(config, apart)
    assert all(p.requires_grad for p in adapters)  # still there to be trained


def test_the_scale_of_adapters_is_bound_to_the_folder_and_read_by_an_evaluation(tmp_path):
    model = save_tiny(tmp_path / "model")
    _, made = made_from(tmp_path, model, model, "train.method=lora", "train.lora_alpha=64")
    (tmp_path / "checkpoints" / "round-00000001").mkdir(parents=True)
    earlier = {key: value for key, value in made.settings.items() if key != "train.lora_alpha"}
    state.bind_settings(tmp_path, earlier)
    assert trained_in(tmp_path).train.lora_alpha == 32
    state.bind_settings(tmp_path, made.settings)
    assert trained_in(tmp_path).train.lora_alpha == 64
    with pytest.raises(StateError, match=r"made with train\.lora_alpha=64, not 32"):
        made_from(tmp_path, model, model, "train.method=lora")


def test_a_fully_trained_policy_has_a_judge_of_its_own(tmp_path):
    model = save_tiny(tmp_path / "model")
    _, made = made_from(tmp_path / "a", model, model, "train.method=full")
    assert made.judge.model is not made.policy.model
    assert not any(p.requires_grad for p in made.judge.model.parameters())


def test_a_judge_behind_a_server_is_asked_first_and_takes_no_memory_here(tmp_path, monkeypatch, capsys):
    planned = remembered_plans(monkeypatch)
    model = save_tiny(tmp_path / "model")
    yes = {"token": "Yes", "logprob": -0.1}
    answer = {"choices": [{"message": {"content": "Yes"}, "logprobs": {"content": [yes]}}]}
    with serve(reply(200, answer)) as server:
        settings = ("evaluator=openai", f"evaluator.url={server.url}/v1", "train.method=lora")
        config, made = made_from(tmp_path / "a", model, "served-name", *settings)
        assert opinions(config, made) == pytest.approx([1.0, 1.0])
        assert {body["model"] for body in server.bodies} == {"served-name"}
    assert made.judge is None
    assert [(load.evaluator_bytes, load.evaluator_is_base) for load in planned] == [(0, False)]
    assert made.settings["evaluator.backend"] == "openai"
    assert "evaluator.model" not in made.settings
    assert "(openai: evaluator.backend=openai)" in capsys.readouterr().out


def test_a_server_that_is_down_ends_the_start_before_weights_are_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "load_model", lambda *_: pytest.fail("loaded"))
    model = save_tiny(tmp_path / "model")
    settings = ("evaluator=ollama", "evaluator.url=http://127.0.0.1:9", "evaluator.retries=0")
    with pytest.raises(EvaluatorError, match="cannot be asked"):
        made_from(tmp_path / "a", model, "judge", *settings)


def test_a_judge_in_llama_cpp_counts_as_its_file_and_works(tmp_path, monkeypatch):
    pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: pip install codezero[llama-cpp]")
    planned = remembered_plans(monkeypatch)
    judge = tmp_path / "judge.gguf"
    gguf_files.write_tiny_gguf(judge)
    settings = ("evaluator=llama_cpp", "evaluator.verdict=generate", "evaluator.max_new_tokens=2")
    config, made = made_from(tmp_path / "a", save_tiny(tmp_path / "model"), judge, *settings)
    try:
        assert opinions(config, made) == [None, None]  # a random model writes no verdict, but it writes
    finally:
        made.judge_backend.close()
    assert made.judge is None
    assert [load.evaluator_bytes for load in planned] == [judge.stat().st_size + judging.LLAMA_CPP_BYTES]
    assert made.settings["evaluator.model"] == str(judge)


def test_auto_leaves_for_llama_cpp_where_memory_does_not_hold_the_judge(tmp_path, monkeypatch):
    model = save_tiny(tmp_path / "model")
    started = []
    plan_training = build.plan_training

    def tight(shape, config, load, room):
        if load.evaluator_bytes > 50:
            raise TrainingError("too much")
        return plan_training(shape, config, load, room)

    monkeypatch.setattr(build, "plan_training", tight)
    monkeypatch.setattr(judging, "is_installed", lambda package: True)
    monkeypatch.setattr(judging, "catalogue", SimpleNamespace(find=lambda name: name))
    sizes = {Backend.transformers: 100}
    monkeypatch.setattr(JudgeWeights, "num_bytes", lambda self, backend: sizes.get(backend, 9))
    monkeypatch.setattr(JudgeWeights, "outside", lambda self, backend: started.append(backend))
    _, made = made_from(tmp_path / "a", model, save_tiny(tmp_path / "judge"))
    assert started == [Backend.llama_cpp]
    assert made.judge is None


@pytest.mark.parametrize(("mask", "started"), [("true", []), ("false", ["outside"])])
def test_auto_starts_no_judge_outside_that_could_decide_nothing(tmp_path, monkeypatch, capsys, mask, started):
    model, found, planned = save_tiny(tmp_path / "model"), [], []
    plan_training = build.plan_training

    def tight(shape, config, load, room):
        planned.append(load.evaluator_bytes)
        if load.evaluator_bytes > 1 << 30:  # of the judge in this process
            raise TrainingError("too much")
        return plan_training(shape, config, load, room)

    monkeypatch.setattr(build, "plan_training", tight)
    monkeypatch.setattr(judging, "is_installed", lambda package: True)
    monkeypatch.setattr(JudgeWeights, "file", lambda self: found.append("file"))
    monkeypatch.setattr(judging, "make_outside", lambda *_: found.append("outside"))
    settings = ("evaluator.dtype=float32", f"evaluator.mask={mask}")
    _, made = made_from(tmp_path / "a", model, judging.SMALL_JUDGE, *settings)
    assert (found[-1:], made.judge, made.judge_backend) == (started, None, None)
    assert (planned[-1] == 0) == (mask == "true")
    assert ("masked, without a judge, since" in capsys.readouterr().out) == (mask == "true")
    assert made.settings["evaluator.backend"] == "llama_cpp"


def test_a_node_without_room_says_what_it_needs_with_the_judge_that_takes_none(monkeypatch, tmp_path):
    monkeypatch.setattr(build, "free_room", lambda *_: Room(memory=4 << 30, disk=1 << 40))
    monkeypatch.setattr(judging, "is_installed", lambda package: True)

    def told(backend):
        alone = ("tasks=builtin", "swarm=alone", "model.device=cpu", "model.dtype=float32", "evaluator.workers=1")
        with pytest.raises(TrainingError, match=r"GiB of memory where 4.0 GiB can be used") as refused:
            build.plan_node(load_config([*alone, f"evaluator.backend={backend}"]), tmp_path, Console(), downloads=False)
        return str(refused.value)

    assert told("auto") == told("transformers") != told("llama_cpp")


@pytest.mark.parametrize(
    ("settings", "tasks", "rate"),
    [([], 2, 5e-5), (["swarm.num_local=2"], 2, 1e-4), (["rollout.num_generations=2"], 32, 1e-4)],
)
def test_the_learning_rate_is_lower_where_memory_holds_fewer_attempts(
    tmp_path, monkeypatch, capsys, settings, tasks, rate
):
    def narrow(shape, config, load, room):
        return plan_training(shape, config, replace(load, most_local=2 if load.num_generations > 2 else 32), room)

    plan_training = build.plan_training
    monkeypatch.setattr(build, "plan_training", narrow)
    model = save_tiny(tmp_path / "model")
    _, made = made_from(tmp_path, model, model, "train.method=lora", "rollout.num_generations=8", *settings)
    assert made.num_local == tasks
    assert made.train.lora_learning_rate == pytest.approx(rate)
    assert ("memory holds 16 attempts a round, not 64" in capsys.readouterr().out) == (rate == 5e-5)


def test_probes_are_compared_only_if_prompt_and_judge_are_the_same(tmp_path, monkeypatch):
    model = save_tiny(tmp_path / "model")
    config, made = made_from(tmp_path, model, model)

    def kind():
        probe = probing.make_probe(
            config,
            made.policy,
            {"p": task("a problem")},
            NODE,
            None,
            lambda *_: None,
            engine=made.engine,
            sample=made.sample,
            rows=4,
            turn=nullcontext,
        )
        return probe._kind

    first = kind()
    assert kind() == first
    monkeypatch.setattr("codezero.prompts.solver.messages", lambda question: [{"role": "user", "content": question}])
    assert kind() != first
    monkeypatch.undo()
    copy = tmp_path / "codezero"
    shutil.copytree(probing.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(probing, "PACKAGE", copy)
    kinds = [kind()]
    assert kinds == [first]
    for changed in ("evaluate/rules/new.py", "tasks/testcases.py", "prompts/solver.py"):
        (copy / changed).write_text("# another version\n")
        kinds.append(kind())
    assert len(set(kinds)) == 4


def test_weights_that_two_checkpoints_share_count_once(monkeypatch, tmp_path):
    rooms = []
    monkeypatch.setattr(build, "free_room", lambda *_: Room(memory=4 << 30, disk=1000))
    monkeypatch.setattr(build, "plan_training", lambda shape, config, load, room: rooms.append(room.disk))
    for number in (1, 2):
        (tmp_path / "checkpoints" / f"round-{number}").mkdir(parents=True)
        (tmp_path / "checkpoints" / f"round-{number}" / "node.pt").write_bytes(b"x" * 10)
    (tmp_path / "checkpoints" / "round-1" / "learner.pt").write_bytes(b"x" * 100)
    (tmp_path / "checkpoints" / "round-2" / "learner.pt").hardlink_to(
        tmp_path / "checkpoints" / "round-1" / "learner.pt"
    )
    build.plan_node(
        load_config(["tasks=builtin", "swarm=alone", "model.device=cpu"]), tmp_path, Console(), downloads=False
    )
    assert set(rooms) == {1120}


@pytest.mark.parametrize(
    ("rounds", "memory_gib", "passes"),
    [(1, 16, True), (0, 16, False), (1, 0, False)],
    ids=["of a node with a checkpoint", "of a new node", "with memory short too"],
)
def test_a_disk_that_others_have_filled_is_an_outage(monkeypatch, tmp_path, rounds, memory_gib, passes):
    model = save_tiny(tmp_path / "model")
    monkeypatch.setattr(build, "free_room", lambda *_: Room(memory=memory_gib << 30, disk=1000))
    for number in range(rounds):
        (tmp_path / "checkpoints" / f"round-{number}").mkdir(parents=True)
        (tmp_path / "checkpoints" / f"round-{number}" / "learner.pt").write_bytes(b"x" * 100)
    settings = [f"model.name={model}", f"evaluator.model={model}", "tasks=builtin", "swarm=alone", "model.device=cpu"]
    with pytest.raises(TrainingError, match=r"GiB of disk where") as found:
        build.plan_node(load_config(settings), tmp_path, Console(), downloads=False)
    assert is_outage(found.value) is passes
    assert ("free space, and start again to continue" in str(found.value)) is passes


def test_running_the_tests_instead_loads_no_judge(tmp_path, capsys):
    model = save_tiny(tmp_path / "model")
    _, made = made_from(tmp_path / "a", model, model, "evaluator.backend=execution")
    assert (made.judge, made.judge_backend) == (None, None)
    assert "RUN" in capsys.readouterr().out


@pytest.mark.parametrize("method", ["lora", "full"])
def test_a_judge_of_this_process_waits_for_its_turn(tmp_path, method):
    model = save_tiny(tmp_path / "model")
    config, made = made_from(tmp_path / "a", model, model, f"train.method={method}", "evaluator.dtype=float32")
    found = []
    thread = threading.Thread(target=lambda: found.extend(opinions(config, made)), daemon=True)
    with made.policy_lock:
        thread.start()
        thread.join(0.3)
        assert found == []
    thread.join(60)
    assert len(found) == 2
    assert not made.policy_lock.locked()


@pytest.mark.parametrize(
    ("row", "device", "joined"),
    [
        ("CPU: alone, or in a swarm of your own", "cpu", (False,)),
        ("CPU: in a swarm that you joined", "cpu", (True,)),
        ("NVIDIA GPU, of its own memory: alone, joined", "cuda", (False, True)),
        ("Apple GPU: alone, joined", "mps", (False, True)),
    ],
)
def test_readme_says_what_a_node_plans_with(row, device, joined, monkeypatch):
    monkeypatch.setattr(onednn, "is_available", lambda: True)  # as on the machines that the table is about
    settings = [["swarm=native"] if one else ["preset=local"] for one in joined]
    cells = [
        ", ".join(f"{planned_gib(method, device, one, workers=2):.1f}" for one in settings)
        for method in (TrainMethod.full, TrainMethod.lora)
    ]
    assert f"| {row} | {cells[0]} | {cells[1]} |" in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("name", "width", "inner", "layers", "heads", "tied"),
    [
        ("0.5B", 896, 4864, 24, 14, True),
        ("1.5B", 1536, 8960, 28, 12, True),
        ("3B", 2048, 11008, 36, 16, True),
        ("7B", 3584, 18944, 28, 28, False),
    ],
)
def test_the_page_says_what_models_need_on_a_gpu(tmp_path, name, width, inner, layers, heads, tied):
    shape = Qwen2Config(
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=2 if tied else 4,
        tie_word_embeddings=tied,
        vocab_size=151_936 if tied else 152_064,
    )
    shape.save_pretrained(tmp_path)
    ways = ((TrainMethod.full, True), (TrainMethod.full, False), (TrainMethod.lora, True))
    row = f"| {name} | {' | '.join('{:.1f} to {:.1f}'.format(*gpu_gib(tmp_path, *way)) for way in ways)} |"
    assert row in (ROOT / "docs" / "models.md").read_text(encoding="utf-8").splitlines()


def test_llama_cpp_samples_for_adapters_and_is_planned_for(tmp_path, monkeypatch):
    pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: pip install codezero[llama-cpp]")
    planned = remembered_plans(monkeypatch)
    model = save_tiny(tmp_path / "model", intermediate_size=64)
    _, made = made_from(tmp_path / "a", model, model, "rollout.engine=llama_cpp")
    assert made.settings["train.method"] == "lora"
    assert [load.engine for load in planned] == [RolloutEngine.llama_cpp]
    ((tokens,),) = made.sample(made.policy.model, REQUEST)
    assert len(tokens.completion_ids) == 3


def test_llama_cpp_with_full_fine_tuning_or_without_its_package_says_what_to_do(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match=r"rollout\.engine=llama_cpp.*use train\.method=lora"):
        load_config(["rollout.engine=llama_cpp", "train.method=full"])
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(RolloutError, match=r"not installed: install the extra llama-cpp"):
        made_from(tmp_path / "a", save_tiny(tmp_path / "model"), "x", "rollout.engine=llama_cpp")


@pytest.mark.parametrize(
    ("installed", "says"), [(False, "vllm is not installed"), (True, "this machine computes on cpu")]
)
def test_vllm_without_its_package_or_a_gpu_says_what_to_do(tmp_path, monkeypatch, installed, says):
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(__spec__=0) if installed else None)
    with pytest.raises(RolloutError, match=rf"{says}: install the extra vllm .*engine=transformers"):
        made_from(tmp_path / "a", save_tiny(tmp_path / "model"), "x", "rollout.engine=vllm")


def test_a_node_with_vllm_samples_by_it_and_is_planned_for(tmp_path, monkeypatch):
    """Only that vLLM may sample on this device is pretended."""
    stand_in = [sys.executable, vllm_stand_in.__file__, str(tmp_path / "journal"), "none"]
    monkeypatch.setattr(engines, "require", lambda *_: None)
    started = []

    def start(*folders, cache_bytes):
        started.append(VllmEngine(*folders, cache_bytes=cache_bytes, command=stand_in))
        return started[0]

    monkeypatch.setattr(engines, "VllmEngine", start)
    planned, model = remembered_plans(monkeypatch), save_tiny(tmp_path / "model")
    _, made = made_from(tmp_path / "a", model, model, "rollout.engine=vllm", "train.method=lora")
    assert [load.engine for load in planned] == [RolloutEngine.vllm]
    ((tokens,),) = made.sample(made.policy.model, REQUEST)
    started[0].close()
    assert tokens.completion_ids == (7, 7, 7)
    start = json.loads((tmp_path / "journal").read_text().splitlines()[0])["start"]
    assert start[1] == model
    assert int(start[start.index("--kv-cache-memory-bytes") + 1]) > 0


def test_a_state_goes_on_in_another_precision_as_on_another_device(tmp_path):
    model = save_tiny(tmp_path / "model")
    (tmp_path / "a").mkdir()
    state.bind_settings(tmp_path / "a", {"model.name": model, "model.dtype": "float32", "train.method": "full"})
    _, made = made_from(tmp_path / "a", model, model, "model.dtype=bfloat16", "train.method=full")
    assert made.settings["model.dtype"] == "bfloat16"


def test_a_folder_begun_with_full_fine_tuning_is_not_taken_up_by_llama_cpp(tmp_path):
    pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: pip install codezero[llama-cpp]")
    model = save_tiny(tmp_path / "model", intermediate_size=64)
    (tmp_path / "a").mkdir()
    state.bind_settings(tmp_path / "a", {"train.method": "full"})
    with pytest.raises(StateError, match=r"train\.method"):
        made_from(tmp_path / "a", model, model, "rollout.engine=llama_cpp")


@pytest.mark.parametrize(("free_gib", "large"), [(21, True), (13, True), (12, False), (5, False)])
def test_a_judge_does_not_change_the_training_beside_it(monkeypatch, free_gib, large):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    config = load_config(["swarm=native", "train.method=full"])
    room = Room(memory=free_gib << 30, disk=100 << 30)
    found = build.judge_beside(config, QWEN_0_5B, torch.device("cuda"), torch.bfloat16, room)
    assert found == (judging.LARGE_JUDGE if large else judging.SMALL_JUDGE)
