"""The launcher of a swarm as a process of its own, with small programs in the place of bootnode and nodes."""

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from dataclasses import replace

import pytest
import torch

from codezero.cli import main
from codezero.config import DifficultyPolicy, LedgerKind, Network, ProposerConfig, checkout, swarm_file
from codezero.config.load import load_config
from codezero.config.multiaddr import Multiaddr
from codezero.config.swarm_file import SwarmTasks
from codezero.errors import ConfigError, ModelError, NetworkError, StateError, TrainingError
from codezero.launch import hosting, swarm_settings
from codezero.launch import up as swarm
from codezero.launch.prepare import prepare
from codezero.launch.shared_machine import MemoryShare, Programs
from codezero.launch.swarm_settings import UpOptions
from codezero.launch.up import on_first, program_counts
from codezero.launch.weights import prepare_for
from codezero.proposer import build
from codezero.runtime import state
from codezero.train.memory import read_shape
from codezero.train.method import Room
from codezero.verifier import build as verifier
from tests.builders import save_tiny
from tests.commands import executable, spawn
from tests.processes import is_alive, wait_until_gone
from tests.unit.devchain.test_tick import Lines

LAUNCHER = """\
import os, sys
from pathlib import Path
from codezero.launch.shared_machine import MemoryShare
from codezero.launch.swarm_settings import UpOptions
from codezero.launch.up import up
folder, nodes, proposers, verifiers, rounds, script = sys.argv[1:]
def prepare(settings, choices, environment):
    kept = choices[int(os.environ.get("HELD", 0))]
    gpu = environment.get("CUDA_VISIBLE_DEVICES")
    print("prepared", kept.nodes, kept.proposers, kept.verifiers, gpu, *settings)
    return MemoryShare(programs=kept, node_bytes=1 << 30, other_bytes=1 << 30)
sys.exit(up(
    UpOptions(
        folder=Path(folder), nodes=int(nodes), proposers=int(proposers), with_verifier=verifiers == "1",
        rounds=int(rounds),
    ),
    command=lambda name, left: [sys.executable, script, name, str(left)],
    prepare=prepare,
))
"""
PROGRAM = """\
import os, signal, sys, time
from pathlib import Path
from codezero.runtime.stop import stop_with_parent
name, left = sys.argv[1], int(sys.argv[2])
def play(n):
    print(f"round {n} | of {number}", flush=True)
    logs = Path(__file__).with_suffix("") / name / "logs"
    logs.mkdir(exist_ok=True)
    print(n, file=(logs / "rounds.jsonl").open("a"))
number = int(name.partition("-")[2] or 0)
stop_with_parent()
print(name.partition("-")[0], "here pid", os.getpid(), flush=True)
"""
FOREVER = "time.sleep(600)"
MEMORY = {"node": 2 << 30, "proposer": 1 << 30, "verifier": 1 << 30}


@pytest.fixture
def launch():
    """Starts launchers; one that a failed test leaves running is killed, and its programs end with it."""
    with ExitStack() as stack:

        def start(folder, program, *, nodes=2, proposers=0, verifiers=0, rounds=0, environment=os.environ):
            script = folder.parent / f"{folder.name}.py"
            script.write_text(PROGRAM + textwrap.dedent(program))
            counts = map(str, (nodes, proposers, verifiers, rounds))
            command = [sys.executable, "-c", LAUNCHER, str(folder), *counts, str(script)]
            launcher = stack.enter_context(spawn(command, env=environment, stdin=subprocess.DEVNULL))
            stack.callback(launcher.kill)  # before its context waits for its end
            return launcher

        yield start


def pids_of(launcher, count):
    """Reads the combined view until so many programs have said their process id."""
    pids = []
    for line in launcher.stdout:
        if " pid " in line:
            pids.append(int(line.split()[-1]))
            if len(pids) == count:
                return pids
    raise AssertionError("the launcher ended before all programs ran")


def test_nodes_play_their_rounds_and_the_bootnode_ends_after_them(tmp_path, launch):
    launcher = launch(
        tmp_path / "home",
        "[play(n) for n in range(left)] or time.sleep(600)",
        rounds=2,
    )
    output, _ = launcher.communicate(timeout=300)
    assert launcher.returncode == 0, output
    lines = output.splitlines()
    (shown,) = [line for line in lines if line.startswith("prepared 2 0 0 ")]
    assert "swarm.tasks=known" in shown.split()  # the settings of all nodes
    assert lines[2].endswith("swarm 'home' with 2 nodes, 1 thread and 1.0 GiB of memory a node")
    assert "node-1   | round 0 | of 1" in lines
    assert "node-2   | round 1 | of 2" in lines
    assert lines[-3:] == ["bootnode | stopped", "node-1   | done, 2 rounds", "node-2   | done, 2 rounds"]
    assert (tmp_path / "home" / "node-2" / "output.log").read_text().endswith("round 0 | of 2\nround 1 | of 2\n")
    found = swarm_file.read(tmp_path / "home" / "swarm.yaml")
    assert (found.name, found.network, found.ledger, found.num_generations) == (
        "home",
        Network.native,
        LedgerKind.local,
        8,
    )


def test_memory_is_planned_with_the_model_that_a_proposer_has_trained(tmp_path, launch):
    folder = tmp_path / "home" / "proposer-1" / "state" / "proposer"
    folder.mkdir(parents=True)
    state.bind_settings(folder, {"proposer.model": "trained"})
    shutil.copytree(checkout.CONFIGS, tmp_path / "configs")
    with (tmp_path / "configs" / "preset" / "local.yaml").open("a") as settings:
        settings.write("proposer: {train: true}\n")
    environment = {**os.environ, "CODEZERO_CONFIG_DIR": str(tmp_path / "configs")}
    program = "[play(n) for n in range(left)] or time.sleep(600)"
    launcher = launch(tmp_path / "home", program, nodes=1, proposers=1, rounds=1, environment=environment)
    output, _ = launcher.communicate(timeout=300)
    (shown,) = [line for line in output.splitlines() if line.startswith("prepared ")]
    assert "proposer.model='trained'" in shown.split()


def test_nodes_play_the_rounds_of_the_settings_file_where_the_command_names_none(tmp_path, launch):
    shutil.copytree(checkout.CONFIGS, tmp_path / "configs")
    settings = tmp_path / "configs" / "node.yaml"
    settings.write_text(settings.read_text().replace("rounds: 0", "rounds: 2"))
    environment = {**os.environ, "CODEZERO_CONFIG_DIR": str(tmp_path / "configs")}
    program = "[play(n) for n in range(left)] or time.sleep(600)"
    output, _ = launch(tmp_path / "home", program, nodes=1, environment=environment).communicate(timeout=300)
    assert output.splitlines()[-1] == "node-1   | done, 2 rounds"


def test_a_node_that_fails_for_good_makes_the_exit_code_1_and_others_go_on(tmp_path, launch):
    program = """
    if number == 0: time.sleep(600)
    if number == 1: sys.exit("error: no such model")
    log = Path(__file__).with_suffix("") / "swarm_launcher.log"
    while "node-1   | failed for good" not in log.read_text(): time.sleep(0.05)
    play(1)
    """
    launcher = launch(tmp_path / "home", program, rounds=1)
    output, _ = launcher.communicate(timeout=300)
    assert launcher.returncode == 1
    assert "node-1   | failed for good, 0 rounds, see " in output
    assert "node-2   | done, 1 round\n" in output


def test_several_gpus_are_divided_among_the_programs_and_the_smallest_is_planned_with(tmp_path, launch):
    program = """
    if name == "bootnode": time.sleep(600)
    print("sees", os.environ.get("CUDA_VISIBLE_DEVICES"))
    if name == "node-3": sys.exit("error: the GPU is lost")
    if name == "verifier": print("state: new", flush=True)
    if not name.startswith("node"): time.sleep(600)
    proposer = Path(__file__).with_suffix("") / "proposer-1" / "output.log"
    while not (proposer.exists() and "sees" in proposer.read_text()): time.sleep(0.05)
    play(1)
    """
    executable(tmp_path / "nvidia-smi", "#!/bin/sh\nprintf '0, 24564\\n1, 81559\\n2, 16376\\n'\n")
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    launcher = launch(tmp_path / "home", program, nodes=0, proposers=1, verifiers=1, rounds=1, environment=environment)
    output, _ = launcher.communicate(timeout=300)
    lines = output.splitlines()
    assert any(line.startswith("prepared 1 0 1 2 ") for line in lines)
    assert any("with 3 nodes, 1 proposer and a test writer on GPU 2, 0, 1 in turn, " in line for line in lines)
    for name, gpu in {"node-1": 2, "node-2": 0, "node-3": 1, "proposer-1": 0, "verifier": 2}.items():
        assert any(line.startswith(name) and line.endswith(f" | sees {gpu}") for line in lines)
    assert sum(line.endswith("| done, 1 round") for line in lines) == 2  # in spite of the one that is lost
    assert launcher.returncode == 1


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ([], ["known"]),
        (["swarm.tasks=any"], ["any"]),
        (["tasks=code_contests"], ["known"]),
        (["swarm=genrl"], ["known"]),
        (["tasks=reasoning_gym"], ["any"]),
        (["preset=faithful", "swarm=native", "tasks=mbpp"], []),
    ],
)
def test_nodes_take_tasks_that_they_know_unless_an_environment_makes_them(tmp_path, settings, wanted):
    given, _ = swarm_settings.node_settings(UpOptions(folder=tmp_path, settings=settings), None)
    assert [one.partition("=")[2] for one in given if one.startswith("swarm.tasks=")] == wanted


def test_a_signal_to_the_launcher_ends_all(tmp_path, launch):
    launcher = launch(tmp_path / "home", FOREVER)
    pids = pids_of(launcher, 3)
    launcher.terminate()
    output, _ = launcher.communicate(timeout=300)
    assert launcher.returncode == 0
    assert not any(map(is_alive, pids))
    assert "stopping; finished rounds are saved" in output
    assert "node-1   | stopped, 0 rounds" in output


def test_a_second_signal_kills_what_does_not_stop(tmp_path, launch):
    launcher = launch(
        tmp_path / "home", "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf'); time.sleep(600)"
    )
    pids = pids_of(launcher, 3)
    launcher.send_signal(signal.SIGINT)
    for line in launcher.stdout:
        if "stopping" in line:
            break
    assert launcher.poll() is None
    launcher.send_signal(signal.SIGINT)
    output, _ = launcher.communicate(timeout=60)
    assert launcher.returncode == 0
    assert not any(map(is_alive, pids))
    assert "killed, since it did not stop when asked" in output


def test_when_the_launcher_is_killed_its_programs_end_and_the_folder_is_free_again(tmp_path, launch):
    slow = f"""
    def last(*_):
        while not os.path.exists({str(tmp_path / "refused")!r}): time.sleep(0.05)
        sys.exit(0)
    signal.signal(signal.SIGTERM, last)
    time.sleep(600)
    """
    launcher = launch(tmp_path / "home", slow)
    pids = pids_of(launcher, 3)
    launcher.kill()
    launcher.communicate(timeout=120)
    early = launch(tmp_path / "home", FOREVER).communicate(timeout=120)[0]
    assert f"is in use by the swarm with process id {launcher.pid}" in early  # its nodes still hold their state
    (tmp_path / "refused").touch()
    wait_until_gone(pids)
    late = launch(tmp_path / "home", "number == 0 and time.sleep(600)\nplay(1)", rounds=1)
    assert "node-1   | done, 1 round\n" in late.communicate(timeout=300)[0]


def test_programs_that_print_while_the_launcher_is_killed_end_too(tmp_path, launch):
    launcher = launch(tmp_path / "home", "while True: print('noise', flush=True); time.sleep(0.01)")
    pids = pids_of(launcher, 3)
    launcher.kill()
    launcher.stdout.close()
    launcher.wait()
    wait_until_gone(pids)


def test_a_second_launcher_on_a_folder_is_refused(tmp_path, launch):
    launcher = launch(tmp_path / "home", FOREVER)
    pids_of(launcher, 3)
    with pytest.raises(StateError, match=f"in use by the swarm with process id {launcher.pid}: stop that swarm"):
        swarm.up(UpOptions(nodes=1, folder=tmp_path / "home"))


def test_nodes_differ_in_what_they_must_and_share_the_rest(tmp_path):
    folder = tmp_path / "it's ${here}"
    options = UpOptions(nodes=2, folder=folder, settings=["seed=7", "rollout.num_generations=6"])
    settings = swarm_settings.shared_settings(options, None)
    config = load_config(settings)
    home = hosting.describe(config, 4001, "Qm" + "a" * 44, [])
    nodes = [swarm.command_line(options, config, home, settings, MEMORY, name, 3) for name in ("node-1", "node-2")]
    assert all(argv[1:5] == ["-m", "codezero", "run", "--stop-with-parent"] for argv in nodes)
    first, second = (load_config(argv[5:]) for argv in nodes)
    assert (first.seed, second.seed, first.rounds) == (8, 9, 3)
    assert first.state_dir == str(folder / "node-1" / "state")
    assert second.tracking.log_dir == str(folder / "node-2" / "logs")
    assert second.swarm.identity_path == str(folder / "node-2" / "swarm.pem")
    assert first.swarm.bootnodes == second.swarm.bootnodes == [f"/ip4/127.0.0.1/tcp/4001/p2p/Qm{'a' * 44}"]
    assert (first.swarm.network, first.swarm.name, first.swarm.num_external) == (Network.native, "it's ${here}", 2)
    assert (first.rollout.num_generations, first.tasks.builtin.weight, first.tasks.mbpp.weight) == (6, 1, 0)
    assert first.swarm.listen == ["/ip4/0.0.0.0/tcp/0"]


def test_a_proposer_is_started_with_the_settings_of_all(tmp_path):
    options = UpOptions(nodes=1, folder=tmp_path, settings=["proposer=faithful"])
    settings = swarm_settings.shared_settings(options, None)
    config = load_config(settings)
    home = hosting.describe(config, 4001, "Qm" + "a" * 44, [])
    argv = swarm.command_line(options, config, home, settings, MEMORY, "proposer-1", 0)
    assert argv[1:5] == ["-m", "codezero", "propose", "--stop-with-parent"]
    its = load_config(argv[5:])
    assert (its.proposer.policy, its.state_dir) == (DifficultyPolicy.trend, str(tmp_path / "proposer-1" / "state"))
    assert its.swarm.bootnodes == [f"/ip4/127.0.0.1/tcp/4001/p2p/Qm{'a' * 44}"]
    assert its.train.memory_limit_gib == 1.0


def test_a_test_writer_learns_alone_and_the_proposers_follow_it(tmp_path):
    options = UpOptions(nodes=1, folder=tmp_path, with_verifier=True, settings=["seed=7", "proposer.batch_size=2"])
    settings = swarm_settings.shared_settings(options, None)
    config = load_config(settings)
    settings += swarm_settings._tests_by_verifier(options, settings, config)
    home = hosting.describe(config, 4001, "Qm" + "a" * 44, [])
    argv = swarm.command_line(options, config, home, settings, MEMORY, "verifier", 0)
    assert argv[1:5] == ["-m", "codezero", "verify", "--stop-with-parent"]
    its = load_config(argv[5:])
    assert (its.swarm.network, its.train.memory_limit_gib, its.seed) == (Network.none, 1.0, 8)
    assert (its.state_dir, its.tracking.log_dir) == (str(tmp_path / "verifier/state"), str(tmp_path / "verifier/logs"))
    assert its.tasks.builtin.weight == 1
    proposer = load_config(swarm.command_line(options, config, home, settings, MEMORY, "proposer-1", 0)[5:]).proposer
    assert (proposer.writer, proposer.model) == (its.state_dir, its.model.name)
    assert proposer.batch_size == 2


def test_proposers_and_test_writer_have_no_end_of_their_own_in_the_settings_file(tmp_path, monkeypatch):
    shutil.copytree(checkout.CONFIGS, tmp_path / "configs")
    with (tmp_path / "configs" / "node.yaml").open("a") as settings_file:
        settings_file.write("proposer: {batches: 1}\nverifier: {batches: 1}\n")
    monkeypatch.setenv("CODEZERO_CONFIG_DIR", str(tmp_path / "configs"))
    options = UpOptions(nodes=1, folder=tmp_path)
    settings = swarm_settings.shared_settings(options, None)
    config = load_config(settings)
    assert (config.proposer.batches, config.verifier.batches) == (1, 1)
    home = hosting.describe(config, 4001, "Qm" + "a" * 44, [])
    proposer, verifier = (
        load_config(swarm.command_line(options, config, home, settings, MEMORY, name, 0)[5:])
        for name in ("proposer-1", "verifier")
    )
    assert (proposer.proposer.batches, verifier.verifier.batches) == (0, 0)


def test_proposers_start_when_the_test_writer_has_loaded_its_model_and_a_killed_one_comes_back(tmp_path, launch):
    home = tmp_path / "home"
    program = f"""
        loaded = Path({str(tmp_path / "loaded")!r})
        if name == "verifier":
            if loaded.exists():
                print("state: continuing", flush=True)
                Path({str(tmp_path / "again")!r}).touch()
            time.sleep(0 if loaded.exists() else 3)
            loaded.touch()
            print("state: new", flush=True)
            while not Path({str(home / "proposer-1" / "output.log")!r}).exists(): time.sleep(0.05)
            if not Path({str(tmp_path / "again")!r}).exists(): os.kill(os.getpid(), signal.SIGKILL)
        if name == "proposer-1": print("began with a test writer:", loaded.exists(), flush=True)
        if name == "node-1":
            while not Path({str(tmp_path / "again")!r}).exists(): time.sleep(0.05)
            play(1)
        else:
            time.sleep(600)
    """
    launcher = launch(home, program, nodes=1, proposers=1, verifiers=1, rounds=1)
    output, _ = launcher.communicate(timeout=300)
    assert launcher.returncode == 0, output
    lines = output.splitlines()
    assert any("swarm 'home' with 1 node, 1 proposer and a test writer, 1 thread" in line for line in lines)
    assert "proposer-1 | began with a test writer: True" in lines
    assert any(line.startswith("verifier   | crashed: killed by signal 9") for line in lines)
    assert "verifier   | stopped, 1 restart" in lines


def test_a_test_writer_that_does_not_start_ends_the_swarm_with_its_reason(tmp_path, launch):
    program = "sys.exit('error: a test writer needs 9 GiB') if name == 'verifier' else time.sleep(600)"
    launcher = launch(tmp_path / "home", program, nodes=1, proposers=1, verifiers=1)
    output, _ = launcher.communicate(timeout=300)
    assert launcher.returncode == 1
    assert "the verifier did not start (a test writer needs 9 GiB): see " in output
    assert "proposer here" not in output


def test_each_program_serves_its_numbers_at_a_port_of_its_own(tmp_path):
    options = UpOptions(nodes=2, folder=tmp_path, with_verifier=True, settings=["tracking.prometheus_port=9400"])
    settings = swarm_settings.shared_settings(options, None)
    config = load_config(settings)
    home = hosting.describe(config, 4001, "Qm" + "a" * 44, [])
    commands = [
        swarm.command_line(options, config, home, settings, MEMORY, name, 0)
        for name in ("node-1", "node-2", "proposer-1", "verifier")
    ]
    assert [load_config(argv[5:]).tracking.prometheus_port for argv in commands] == [9400, 9401, 9402, 9403]


def test_proposers_end_after_the_nodes_whatever_they_print(tmp_path, launch):
    log = tmp_path / "home" / "proposer-2" / "output.log"
    program = f"""
        while name != "node-1" or not (os.path.exists({str(log)!r}) and os.path.getsize({str(log)!r})):
            time.sleep(0.05)
        play(1)
    """
    launcher = launch(tmp_path / "home", program, nodes=1, proposers=2, rounds=1)
    output, _ = launcher.communicate(timeout=300)
    assert launcher.returncode == 0, output
    assert "with 1 node and 2 proposers, 1 thread and 1.0 GiB" in output
    assert {"proposer-1 | stopped", "proposer-2 | stopped"} <= set(output.splitlines())
    assert log.read_text().startswith("proposer here")


def test_the_bootnode_listens_where_the_file_says(tmp_path):
    options = UpOptions(nodes=1, folder=tmp_path, announce=["/dns4/example.org/tcp/4001"])
    config = load_config(["swarm=native", "swarm.listen=[/ip4/127.0.0.1/tcp/0]"])
    home = hosting.describe(config, 23456, "Qm" + "a" * 44, [Multiaddr.parse(text) for text in options.announce])
    argv = swarm.command_line(options, config, home, [], MEMORY, "bootnode", 0)
    assert argv[3:6] == ["swarm", "bootnode", "--stop-with-parent"]
    assert argv[6:] == [
        "--listen=/ip4/127.0.0.1/tcp/23456",
        "--announce=/dns4/example.org/tcp/4001",
        f"--identity={tmp_path}/bootnode/swarm.pem",
        "--network=native",
    ]
    assert home.bootnodes == (
        f"/ip4/127.0.0.1/tcp/23456/p2p/Qm{'a' * 44}",
        f"/dns4/example.org/tcp/4001/p2p/Qm{'a' * 44}",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpus": "0", "settings": ["model.device=cpu"]}, "model.device=cpu and --gpus exclude each other"),
        ({"settings": ["proposer.batches=1"]}, "proposers write for as long as there are nodes"),
        ({"settings": ["verifier.batches=1"]}, "a test writer learns for as long as there are nodes"),
        ({"with_verifier": True, "proposers": 0}, "--with-verifier is not possible with --proposers 0: it writes"),
        ({"with_verifier": True, "settings": ["proposer.writer=state"]}, "proposer.writer=state and --with-verifier"),
        (
            {"with_verifier": True, "settings": ["proposer.model=Qwen/Qwen3-4B"]},
            "proposer.model=Qwen/Qwen3-4B is not possible with --with-verifier, which trains a test writer from ",
        ),
        (
            {"with_verifier": True, "settings": ["proposer.url=http://127.0.0.1/v1"]},
            "a test writer's adapters; leave out proposer.url",
        ),
        (
            {"with_verifier": True, "settings": ["proposer.reference=none"]},
            "tests are tried on a solution: set proposer.reference=dry_run",
        ),
        ({"announce": ["example.org"]}, "--announce=example.org is not an address"),
        ({"settings": ["state_dir=x"]}, "state_dir=x is not possible here: every node has its own in --folder"),
        ({"settings": ["rounds=3"]}, "rounds=3 is not possible here: use --rounds"),
        ({"settings": ["swarm=alone"]}, "swarm=alone is not possible here: use swarm=native or swarm=genrl"),
        ({"settings": ["swarm=a.yaml"]}, f"to join that swarm use {checkout.COMMAND} run swarm=a.yaml"),
        ({"settings": ["swarm.bootnodes=[]"]}, f"to join another one use {checkout.COMMAND} run swarm=FILE"),
        ({"settings": ["swarm.listen=[]"]}, r"swarm.listen=\[\] is not possible here"),
        ({"settings": ["swarm.listen=[/ip4/0.0.0.0/tcp/4001]"]}, "use port 0, every node needs its own"),
        ({"settings": ["swarm.listen=[/unix/x]"]}, "swarm.listen=/unix/x is not an address"),
        ({"settings": ["train.learnin_rate=1"]}, "unknown setting train.learnin_rate"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_started(tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        swarm.up(UpOptions(**{"nodes": 1, "folder": tmp_path / "home", **options}))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_used_is_named(tmp_path):
    with pytest.raises(StateError, match=r"cannot use swarm folder .*/home: File name too long; give another --folder"):
        swarm.up(UpOptions(nodes=1, folder=tmp_path / ("x" * 300) / "home"))


def test_a_damaged_swarm_file_is_named(tmp_path):
    (tmp_path / "swarm.yaml").write_text("version: [")
    with pytest.raises(ConfigError, match=rf"swarm file {tmp_path}/swarm\.yaml: it is not YAML"):
        swarm.up(UpOptions(nodes=1, folder=tmp_path))


def test_memory_is_shared_out_and_a_limit_is_each_nodes_own(tmp_path):
    model = save_tiny(tmp_path / "model")
    settings = ["preset=local", f"model.name={model}", f"evaluator.model={model}", "model.device=cpu"]
    alone, shared = (prepare_for(load_config(settings), [Programs(nodes=count)]).node_bytes for count in (1, 4))
    assert 0.5 < shared / (alone / 4) < 2  # other programs come and go
    many = Programs(nodes=4, proposers=1, verifiers=1)
    limited = prepare_for(load_config([*settings, "train.memory_limit_gib=3"]), [many])
    assert limited == MemoryShare(programs=many, node_bytes=3 << 30, other_bytes=3 << 30)


@pytest.mark.parametrize(("mask", "prepared"), [("true", []), ("false", ["llama_cpp"])])
def test_a_judge_that_no_node_will_start_is_not_downloaded(tmp_path, monkeypatch, mask, prepared):
    model, found = save_tiny(tmp_path / "model"), []
    monkeypatch.setattr("codezero.evaluate.build.is_installed", lambda package: True)
    monkeypatch.setattr("codezero.evaluate.build.JudgeWeights.file", lambda self: found.append("llama_cpp"))
    monkeypatch.setattr("codezero.evaluate.build.JudgeWeights.folder", lambda self: found.append("transformers"))
    monkeypatch.setattr("codezero.launch.weights.free_room", lambda *_: Room(memory=2 << 30, disk=1 << 40))
    settings = ["preset=local", f"model.name={model}", "model.device=cpu", "evaluator.dtype=float32"]
    prepare_for(load_config([*settings, f"evaluator.mask={mask}"]), [Programs(nodes=1)])
    assert found == prepared


def test_proposer_and_test_writer_take_their_part_of_the_memory_before_nodes_share_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr("codezero.launch.weights.free_room", lambda *_: Room(memory=10 << 30, disk=1 << 40))
    model = save_tiny(tmp_path / "model")
    config = load_config([f"model.name={model}", f"evaluator.model={model}", "model.device=cpu"])
    monkeypatch.setattr("codezero.llm.device.computes_in_bfloat16", lambda: False)
    needed = build.num_bytes(config, model, torch.device("cpu"))
    two = Programs(nodes=2, proposers=1)
    weights = 4 * read_shape(model).num_parameters  # which all map from one file
    found = prepare_for(config, [two])
    room = (10 << 30) + 2 * weights
    assert (found.node_bytes, found.other_bytes) == ((room - needed) // 2, room // 3)
    verifying = verifier.num_bytes(config, torch.device("cpu"))
    found = prepare_for(config, [replace(two, verifiers=1)])
    room += weights
    assert (found.node_bytes, found.other_bytes) == ((room - needed - verifying) // 2, room // 4)
    served = replace(config, proposer=ProposerConfig(model="qwen3", url="http://127.0.0.1:8000/v1"))
    assert prepare_for(served, [two]).node_bytes == (10 << 30) // 2 + weights // 2  # its model is somewhere else


@pytest.mark.parametrize("setting", ["train.method=full", "model.dtype=bfloat16"])
def test_weights_that_each_program_has_for_itself_count_for_each(tmp_path, monkeypatch, setting):
    monkeypatch.setattr("codezero.launch.weights.free_room", lambda *_: Room(memory=10 << 30, disk=1 << 40))
    model = save_tiny(tmp_path / "model")
    config = load_config([f"model.name={model}", f"evaluator.model={model}", "model.device=cpu", setting])
    assert prepare_for(config, [Programs(nodes=2)]).node_bytes == 5 << 30


def test_without_a_number_of_nodes_as_many_are_started_as_memory_holds(tmp_path, monkeypatch):
    wanted = program_counts(UpOptions(folder=tmp_path), 0)
    assert wanted == [Programs(nodes=2, proposers=1), Programs(nodes=1, proposers=1), Programs(nodes=1)]
    assert program_counts(UpOptions(folder=tmp_path, with_verifier=True), 0)[1:] == [
        Programs(nodes=1, proposers=1, verifiers=1)
    ]
    assert len(program_counts(UpOptions(folder=tmp_path, nodes=2), 0)) == 1
    model = save_tiny(tmp_path / "model")
    config = load_config([f"model.name={model}", f"evaluator.model={model}", "model.device=cpu"])
    for room in (2 << 30, 10 << 30):
        monkeypatch.setattr("codezero.launch.weights.free_room", lambda *_, room=room: Room(memory=room, disk=1 << 40))
        held = prepare_for(config, wanted).programs
        assert held == (wanted[0] if room > 4 << 30 else wanted[1])


def test_on_several_gpus_a_card_without_a_proposer_is_tried_too(tmp_path):
    wanted = program_counts(UpOptions(folder=tmp_path), 3)
    assert wanted == [Programs(nodes=nodes, proposers=1) for nodes in (3, 2, 1)] + [Programs(nodes=1)]
    assert [on_first(programs, 3) for programs in wanted] == [Programs(nodes=1, proposers=1), *[Programs(nodes=1)] * 3]
    assert on_first(Programs(nodes=3, proposers=1), 2) == Programs(nodes=2)
    assert on_first(wanted[0], 0) == wanted[0]


def test_fewer_than_the_default_are_told(tmp_path, launch):
    environment = {**os.environ, "HELD": "2"}
    launcher = launch(
        tmp_path / "home",
        "if number == 0: time.sleep(600)\nplay(1)",
        nodes=0,
        proposers=1,
        rounds=1,
        environment=environment,
    )
    output, _ = launcher.communicate(timeout=300)
    assert launcher.returncode == 0, output
    assert "memory does not hold the default" in output
    assert "with 1 node, " in output
    assert not (tmp_path / "home" / "proposer-1").exists()


def test_nodes_that_do_not_fit_are_refused_before_any_is_started(tmp_path):
    model = save_tiny(tmp_path / "model")
    settings = ["preset=local", f"model.name={model}", f"evaluator.model={model}", "model.device=cpu"]
    said = r"no room for 3 programs .*: training with .* where 0.1 GiB can be used: start fewer \(--nodes 1"
    with pytest.raises(TrainingError, match=said):
        prepare_for(load_config([*settings, "train.memory_limit_gib=0.1"]), [Programs(nodes=2, proposers=1)])


@pytest.mark.slow
def test_the_process_that_prepares_gives_its_answer_or_its_error(tmp_path):
    model = save_tiny(tmp_path / "model")
    settings = [f"model.name={model}", f"evaluator.model={model}", "model.device=cpu", "train.memory_limit_gib=3"]
    many = Programs(nodes=4, proposers=1, verifiers=1)
    assert prepare(settings, [many], os.environ) == MemoryShare(programs=many, node_bytes=3 << 30, other_bytes=3 << 30)
    with pytest.raises(ModelError, match=f"folder {tmp_path} lacks config.json"):
        prepare([*settings, f"evaluator.model={tmp_path}"], [Programs(nodes=2)], os.environ)


@pytest.fixture
def taken_port():
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        yield listener.getsockname()[1]


def made_swarm(port, *hosts):
    return swarm_file.SwarmFile(
        name="home",
        network=Network.native,
        bootnodes=tuple(f"/ip4/{host}/tcp/{port}/p2p/Qm{'a' * 44}" for host in hosts),
        ledger=LedgerKind.local,
        num_generations=4,
    )


def test_a_swarm_keeps_its_port_and_takes_another_when_it_is_taken(taken_port):
    listen, console = Multiaddr.parse("/ip4/0.0.0.0/tcp/0"), Lines()
    port = hosting.choose_port(None, listen, None, console)
    assert port in hosting.PORTS
    assert hosting.choose_port(None, listen, made_swarm(port, "127.0.0.1"), console) == port
    assert console.lines == []
    assert hosting.choose_port(None, listen, made_swarm(taken_port, "127.0.0.1"), console) != taken_port
    assert (
        f"cannot listen on tcp port {taken_port} of 0.0.0.0 (Address already in use), as this swarm did"
        in console.lines[0]
    )
    with pytest.raises(NetworkError, match=f"cannot listen on tcp port {taken_port} of 0.0.0.0"):
        hosting.choose_port(taken_port, listen, None, console)


def test_a_machine_without_ipv6_is_told_in_one_line(monkeypatch):
    def no_socket(*_):
        raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))

    monkeypatch.setattr(hosting.socket, "socket", no_socket)
    with pytest.raises(NetworkError, match=r"cannot listen on tcp port 4001 of :: \(Address family not supported by"):
        hosting.choose_port(4001, Multiaddr.parse("/ip6/::/tcp/0"), None, Lines())


def test_a_swarm_that_listens_everywhere_is_reached_at_the_machines_addresses(monkeypatch):
    family = {"ip4": socket.AF_INET, "ip6": socket.AF_INET6, "link": socket.AF_UNIX}
    interfaces = {
        "lo": [("ip4", "127.0.0.1"), ("ip6", "::1")],
        "eth0": [("link", "02:42:ac"), ("ip4", "192.168.1.5"), ("ip6", "fe80::1%eth0"), ("ip6", "2001:db8::5")],
        "down": [("ip4", "10.0.0.1")],
        "auto": [("ip4", "169.254.7.7")],
    }
    address = type(
        "Address", (), {"__init__": lambda self, kind, text: vars(self).update(family=family[kind], address=text)}
    )
    monkeypatch.setattr(
        "psutil.net_if_addrs", lambda: {name: [address(*pair) for pair in all_] for name, all_ in interfaces.items()}
    )
    up = {name: type("Stats", (), {"isup": name != "down"}) for name in interfaces}
    monkeypatch.setattr("psutil.net_if_stats", lambda: up)
    config = load_config(["swarm=native", "swarm.listen=[/ip4/0.0.0.0/tcp/0,/ip6/::/tcp/0]"])
    found = hosting.describe(config, 4001, "Qm" + "a" * 44, [Multiaddr.parse("/dns/example.org/tcp/9")])
    assert [text.rpartition("/p2p/")[0] for text in found.bootnodes] == [
        "/ip4/127.0.0.1/tcp/4001",
        "/dns/example.org/tcp/9",
        "/ip4/192.168.1.5/tcp/4001",
        "/ip6/::1/tcp/4001",
        "/ip6/2001:db8::5/tcp/4001",
    ]


@pytest.mark.parametrize(
    ("settings", "tasks"),
    [
        (["tasks=auto"], SwarmTasks.auto),
        (["preset=faithful"], SwarmTasks.auto),
        (["preset=local"], SwarmTasks.builtin),
        (["tasks=mbpp", "tasks.mbpp.path=rows.jsonl"], SwarmTasks.mbpp),
        (["tasks=mbpp", "tasks.builtin.weight=1"], None),
        (["tasks=reasoning_gym"], None),
        (["tasks=mbpp", "tasks.modules=[sums]"], None),
    ],
)
def test_a_swarm_says_what_its_nodes_draw_from_where_a_choice_has_the_same(settings, tasks):
    config = load_config(["swarm=native", *settings])
    assert hosting.describe(config, 4001, "Qm" + "a" * 44, []).tasks is tasks


def invited(folder, *options):
    assert main(["swarm", "invite", "--folder", str(folder), *options]) == 0
    return swarm_file.read(folder / "invite.yaml")


def test_an_invitation_has_the_addresses_for_other_machines(tmp_path, capsys):
    swarm_file.write(tmp_path / "swarm.yaml", made_swarm(4001, "127.0.0.1", "192.168.1.5", "198.41.0.4"))
    assert invited(tmp_path) == made_swarm(4001, "192.168.1.5", "198.41.0.4")
    told = capsys.readouterr().out
    assert "/ip4/192.168.1.5/tcp/4001/p2p/Qm" in told
    assert "run there: ./run_rl_swarm.sh --join invite.yaml, or .venv/bin/codezero run swarm=invite.yaml" in told
    assert "for machines elsewhere forward the port" not in told
    assert load_config([f"swarm={tmp_path}/invite.yaml"]).swarm.name == "home"


def test_commands_to_copy_name_a_folder_and_a_file_with_a_space(tmp_path, capsys):
    folder, found = tmp_path / "my swarms", made_swarm(4001, "127.0.0.1", "192.168.1.5")
    told = "\n".join(swarm._header(UpOptions(nodes=1, folder=folder), found, [], ""))
    assert f"status --watch '{folder}', or {checkout.COMMAND} dashboard '{folder}' in a browser\n" in told
    assert f"swarm invite --folder '{folder}'\n" in told
    swarm_file.write(folder / "swarm.yaml", found)
    assert main(["swarm", "invite", "--folder", str(folder), "--out", str(folder / "for ann.yaml")]) == 0
    joins = f"{checkout.START} --join 'for ann.yaml', or {checkout.COMMAND} run 'swarm=for ann.yaml'\n"
    assert joins in capsys.readouterr().out


def test_an_invitation_with_private_addresses_says_what_is_missing(tmp_path, capsys):
    swarm_file.write(tmp_path / "swarm.yaml", made_swarm(4001, "127.0.0.1", "192.168.1.5"))
    invited(tmp_path)
    assert "for machines elsewhere forward the port" in capsys.readouterr().out


def test_an_invitation_can_name_the_address_and_the_file(tmp_path):
    swarm_file.write(tmp_path / "swarm.yaml", made_swarm(4001, "127.0.0.1"))
    out = tmp_path / "for" / "ann.yaml"
    assert main(["swarm", "invite", "--folder", str(tmp_path), "--address", "example.org", "--out", str(out)]) == 0
    assert swarm_file.read(out).bootnodes == (f"/dns/example.org/tcp/4001/p2p/Qm{'a' * 44}",)


@pytest.mark.parametrize(
    ("hosts", "options", "message"),
    [
        ((), [], "error: there is no swarm in "),
        (("127.0.0.1",), [], "is reached from this machine only: start it where there is a network"),
        (("127.0.0.1",), ["--address", "two words"], "error: --address two words is not possible: give an IP address"),
        (("127.0.0.1",), ["--address", "${oc.env:HOME}"], "is not possible: give an IP address or a host name"),
    ],
)
def test_an_invitation_that_nobody_could_use_is_refused(tmp_path, capsys, hosts, options, message):
    if hosts:
        swarm_file.write(tmp_path / "swarm.yaml", made_swarm(4001, *hosts))
    assert main(["swarm", "invite", "--folder", str(tmp_path), *options]) == 1
    found = capsys.readouterr().err
    assert message in found
    assert found.count("\n") == 1
    assert not (tmp_path / "invite.yaml").exists()


def test_a_new_port_makes_old_invitations_void_and_a_new_network_address_does_not(tmp_path):
    options, config, console = (
        UpOptions(nodes=1, folder=tmp_path),
        load_config(["swarm=native", "swarm.name=home"]),
        Lines(),
    )
    before = swarm.describe(options, config, None, console)
    moved = replace(before, bootnodes=(before.bootnodes[0], f"/ip4/198.51.100.1/tcp/1/p2p/Qm{'a' * 44}"))
    assert swarm.describe(options, config, moved, console) == before
    assert console.lines == []
    port = hosting.choose_port(None, Multiaddr.parse("/ip4/0.0.0.0/tcp/0"), None, console)
    swarm.describe(UpOptions(nodes=1, folder=tmp_path, port=port), config, moved, console)
    assert console.lines == [
        "this swarm is no longer what earlier invitations say: make a new one for those you invited"
    ]


def test_a_swarm_started_again_keeps_name_wire_and_group_size_unless_told_otherwise(tmp_path):
    before = swarm_file.SwarmFile(
        name="friends",
        network=Network.genrl,
        bootnodes=(f"/ip4/127.0.0.1/tcp/4001/p2p/Qm{'a' * 44}",),
        ledger=LedgerKind.local,
        num_generations=8,
    )
    again = load_config(swarm_settings.shared_settings(UpOptions(nodes=1, folder=tmp_path), before))
    assert (again.swarm.name, again.swarm.network, again.rollout.num_generations) == ("friends", Network.genrl, 8)
    options = UpOptions(
        nodes=1, folder=tmp_path, settings=["preset=faithful", "swarm=native", "rollout.num_generations=2"]
    )
    other = load_config(swarm_settings.shared_settings(options, before))
    assert (other.swarm.name, other.swarm.network, other.rollout.num_generations) == ("friends", Network.native, 2)
    assert other.evaluator.model == "Qwen2.5-Coder-1.5B-Instruct"
