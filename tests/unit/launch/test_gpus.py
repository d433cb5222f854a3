"""A node for each GPU, on a machine that has none: the list of GPUs and the nodes are stand-ins."""

import io
import sys

import pytest

from codezero.config.load import load_config
from codezero.errors import ConfigError
from codezero.launch import cards, gpus
from codezero.launch.cards import LARGE_MODEL, Gpu, choose, model_for
from codezero.launch.gpus import by_default, run_on_gpus
from codezero.runtime import state
from codezero.runtime.console import Console
from tests.commands import executable


def smi(folder, script):
    """An environment in which nvidia-smi is this shell script."""
    tool = executable(folder / "bin" / "nvidia-smi", f"#!/bin/sh\n{script}\n")
    return {"PATH": f"{tool.parent}:/usr/bin:/bin"}


def some_gpus(count):
    return [
        Gpu(number=str(number), memory_mib=24564, uuid=f"GPU-{number}{'abc'[number % 3]}") for number in range(count)
    ]


def test_every_gpu_gets_a_node_that_sees_it_alone_and_has_what_is_its_own(tmp_path):
    environment = smi(tmp_path, "printf '0\\n1\\n10\\n'")
    program = (
        "import os, sys; print(os.environ['CUDA_VISIBLE_DEVICES'], os.environ['CUDA_DEVICE_ORDER'], *sys.argv[1:]); "
        "home = os.path.dirname(os.environ['GPUS'] % os.environ['CUDA_VISIBLE_DEVICES']); os.makedirs(home); "
        "print(open(home + '/rounds.jsonl', 'w').write('{}\\n'))"
    )
    shown = io.StringIO()
    code = run_on_gpus(
        "all",
        tmp_path / "gpus",
        {**environment, "GPUS": f"{tmp_path}/gpus/gpu-%s/logs/"},
        Console(shown),
        rounds=1,
        settings=["swarm=native", "ledger.path=x.sqlite"],
        command=lambda settings, left: [sys.executable, "-c", program, *settings, f"rounds={left}"],
    )
    assert code == 0
    lines = shown.getvalue().splitlines()
    assert "a node on each of GPU 0, 1, 10, " in lines[0]
    for name in ("0", "1", "10"):
        (line,) = [line for line in lines if f" | {name} PCI_BUS_ID " in line]
        assert line.startswith(f"gpu-{name} ")
        assert f"state_dir='{tmp_path}/gpus/gpu-{name}/state'" in line
        assert "rounds=1" in line
        assert any(line.startswith(f"gpu-{name} ") and line.endswith(" | done, 1 round") for line in lines)
        assert "ledger.path=x.sqlite" in (tmp_path / "gpus" / f"gpu-{name}" / "output.log").read_text()


def test_nodes_share_the_account_and_nothing_else(tmp_path):
    shared = ["swarm=native", "swarm.listen=[/ip4/0.0.0.0/tcp/4001,/ip6/::/tcp/0]", "ledger=modal", "ledger.org_id=me"]
    shared.append("tracking.prometheus_port=9400")
    config = load_config(shared)
    first, second = (
        load_config([*shared, *gpus.settings_of(config, tmp_path / f"gpu-{number}", number, number, 2)])
        for number in (0, 1)
    )
    assert first.ledger == second.ledger
    assert first.swarm.listen == ["/ip4/0.0.0.0/tcp/4001", "/ip6/::/tcp/0"]
    assert second.swarm.listen == ["/ip4/0.0.0.0/tcp/4002", "/ip6/::/tcp/0"]
    for pick in (
        lambda c: c.seed,
        lambda c: c.state_dir,
        lambda c: c.tracking.log_dir,
        lambda c: c.swarm.identity_path,
    ):
        assert pick(first) != pick(second)
    assert (first.tracking.prometheus_port, second.tracking.prometheus_port) == (9400, 9401)
    assert (first.model.threads, first.model.device.value) == (2, "cuda")


def test_the_node_of_a_gpu_keeps_its_seed_whichever_others_run(tmp_path):
    environment = smi(tmp_path, "printf '0\\n1\\n'")

    def seed_of_the_second(wanted):
        seen = []

        def command(settings, left):
            seen.extend(load_config(settings).seed for one in settings if "gpu-1/state" in one)
            return [sys.executable, "-c", ""]

        run_on_gpus(wanted, tmp_path / "gpus", environment, Console(io.StringIO()), command=command)
        return seen

    assert seed_of_the_second("all") == seed_of_the_second("1") == seed_of_the_second("1,0") == [1]


def test_a_machine_without_gpus_says_so(tmp_path):
    with pytest.raises(ConfigError, match=r"no NVIDIA GPU that nvidia-smi can see \(it is not installed\)"):
        cards.find({"PATH": str(tmp_path)})


@pytest.mark.parametrize("script", ["exit 9", "printf 'No devices were found\\n'"])
def test_an_nvidia_smi_that_finds_nothing_is_no_gpu(tmp_path, script):
    with pytest.raises(ConfigError, match="--gpus: "):
        cards.find(smi(tmp_path, script))


@pytest.mark.parametrize(
    ("wanted", "environment", "names"),
    [
        ("all", {}, ["0", "1", "2"]),
        ("all", {"CUDA_VISIBLE_DEVICES": "2,0"}, ["2", "0"]),
        ("all", {"CUDA_VISIBLE_DEVICES": "GPU-1b,GPU-0a, 0"}, ["1", "0"]),
        ("1", {}, ["1"]),
        ("2,0", {"CUDA_VISIBLE_DEVICES": "1"}, ["2", "0"]),
    ],
)
def test_which_gpus_are_used(wanted, environment, names):
    assert [gpu.number for gpu in choose(wanted, some_gpus(3), environment)] == names


@pytest.mark.parametrize(
    ("wanted", "environment", "said"),
    [
        ("3", {}, "there is no GPU '3' here, only 0, 1"),
        ("0,", {}, "there is no GPU ''"),
        ("0,0", {}, "names a GPU twice"),
        ("-1", {}, "there is no GPU '-1'"),
        ("all", {"CUDA_VISIBLE_DEVICES": ""}, "names none of the GPUs 0, 1"),
    ],
)
def test_gpus_that_are_not_there_are_refused(wanted, environment, said):
    with pytest.raises(ConfigError, match=said):
        choose(wanted, some_gpus(2), environment)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("state_dir=x", "state_dir=x is not possible with --gpus: every node has its own in --folder"),
        ("rounds=3", "use --rounds"),
        ("model.device=cpu", "model.device=cpu and --gpus exclude each other"),
    ],
)
def test_what_would_be_the_same_for_all_nodes_is_refused(tmp_path, monkeypatch, setting, said):
    monkeypatch.setattr(cards, "find", lambda _: some_gpus(1))
    with pytest.raises(ConfigError, match=said):
        run_on_gpus("all", tmp_path, {}, Console(io.StringIO()), settings=[setting])


@pytest.mark.parametrize(
    ("memory_mib", "settings", "begun_with", "wanted"),
    [
        ((40960, 81559), [], None, LARGE_MODEL),
        ((24564,), [], None, None),
        ((81559, 24564), [], None, None),
        ((81559,), ["model.name=other"], None, None),
        ((81559,), ["model.device=cpu"], None, None),
        ((81559,), [], "Qwen2.5-Coder-0.5B-Instruct", None),
        ((24564,), [], "other", "other"),
        ((81559,), ["model.device=cpu"], "other", "other"),
        (("[N/A]",), [], None, None),
    ],
)
def test_large_gpus_get_the_larger_model_unless_one_is_named_or_begun_with(
    tmp_path, memory_mib, settings, begun_with, wanted
):
    if begun_with:
        state.bind_settings(tmp_path, {"model.name": begun_with})
    environment = smi(tmp_path, "printf '" + "".join(f"{i}, {one}\\n" for i, one in enumerate(memory_mib)) + "'")
    found = model_for(load_config(settings), settings, [tmp_path], environment)
    why = "with which the state was begun" if begun_with else "as GPUs of 40 GiB allow; MODEL_NAME chooses another"
    assert found == ((f"model.name='{wanted}'", why) if wanted else None)


@pytest.mark.parametrize(("visible", "wanted"), [("", None), ("1", None), ("0", f"model.name='{LARGE_MODEL}'")])
def test_the_memory_of_gpus_that_are_hidden_does_not_count(tmp_path, visible, wanted):
    environment = {**smi(tmp_path, "printf '0, 81559\n1, 24564\n'"), "CUDA_VISIBLE_DEVICES": visible}
    found = model_for(load_config([]), [], [tmp_path], environment)
    assert (found and found[0]) == wanted


def test_without_a_gpu_no_model_is_chosen(tmp_path):
    assert model_for(load_config([]), [], [tmp_path], {"PATH": str(tmp_path)}) is None


@pytest.mark.parametrize(
    ("settings", "environment", "wanted"),
    [
        ([], {}, "all"),
        (["rounds=3"], {}, "all"),
        (["swarm=alone"], {}, ""),
        (["model.device=cpu"], {}, ""),
        (["state_dir=elsewhere"], {}, ""),
        (["swarm.announce=[/ip4/203.0.113.7/tcp/4001]"], {}, ""),
        ([], {"CUDA_VISIBLE_DEVICES": "1"}, ""),
    ],
)
def test_all_gpus_are_used_unless_one_node_is_meant(tmp_path, monkeypatch, settings, environment, wanted):
    monkeypatch.chdir(tmp_path)  # where no node was begun
    settings = ["swarm=native", *settings]
    environment |= smi(tmp_path, "printf '0, 24564\n1, 24564\n'")
    assert by_default(load_config(settings), settings, environment, Console(io.StringIO())) == wanted


@pytest.mark.parametrize("there", ["state", "swarm.pem"])
def test_a_node_that_was_begun_alone_goes_on_and_says_what_else_could_be(tmp_path, monkeypatch, there):
    monkeypatch.chdir(tmp_path)
    if there == "state":
        (tmp_path / "state").mkdir()
        state.bind_settings(tmp_path / "state", {"model.name": "other"})
    else:
        (tmp_path / "swarm.pem").touch()
    shown, environment = io.StringIO(), smi(tmp_path, "printf '0, 24564\n1, 24564\n'")
    assert by_default(load_config(["swarm=native"]), ["swarm=native"], environment, Console(shown)) == ""
    said = f"the node of {there} goes on, on one GPU; --gpus all runs 2 new ones\n"
    assert shown.getvalue() == said


def test_a_machine_with_one_gpu_or_none_has_nothing_to_divide(tmp_path):
    config = load_config([])
    assert cards.gpus_if_several(config, {"PATH": str(tmp_path)}) == []
    assert cards.gpus_if_several(config, smi(tmp_path, "printf '0, 24564\n'")) == []
