"""The real package in its process: offline without a network, online against a server that never answers."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import time

import psutil
import pytest
from wandb.proto.wandb_internal_pb2 import Record

from codezero.observe.trackers.metrics import round_metrics
from codezero.observe.trackers.wandb import WandB, WandbRun, child_environment
from tests.unit.observe.test_monitor import report

KEY = "0123456789abcdef0123456789abcdef01234567"


def run(folder, **changes):
    values = {
        "mode": "offline",
        "folder": str(folder),
        "project": "codezero",
        "entity": "",
        "name": "quick tricky toad",
        "run_id": "abcd1234",
        "config": {"train": {"learning_rate": 1e-6}},
        "finish_s": 60.0,  # on a busy machine
    }
    return WandbRun(**{**values, **changes})


def environment(tmp_path, **more):
    """What a node has, with a home of its own and nothing of the machine's W&B account."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    return {**kept, "HOME": str(tmp_path / "home"), **more}


def played(tracker, rounds):
    tracker.open()
    for number in rounds:
        tracker.log(number, round_metrics(report(number, reward_mean=number / 8)))
    tracker.close()


def records(path):
    """The records of a run file: a LevelDB log of protobufs behind a header of 7 bytes."""
    data, at, part, found = path.read_bytes(), 7, b"", []
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        part += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            record = Record()
            record.ParseFromString(part)
            found.append(record)
            part = b""
    return found


def history(folder):
    """(step, reward/mean) of every round in the only run file."""
    (path,) = folder.glob("wandb/offline-run-*/*.wandb")
    rows = []
    for record in records(path):
        if record.HasField("history"):
            items = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
            rows.append((record.history.step.num, items["reward/mean"]))
    return rows


@pytest.fixture
def nobody_home():
    """A server that accepts connections and says nothing; counts them."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(64)
        server.setblocking(False)
        yield server, f"http://127.0.0.1:{server.getsockname()[1]}"


def num_connections(server):
    count = 0
    while True:
        try:
            server.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


def test_offline_a_run_lies_in_the_log_folder_and_nobody_is_asked(tmp_path, nobody_home):
    server, url = nobody_home
    proxies = {f"{kind}_PROXY": url for kind in ("HTTP", "HTTPS", "ALL")}
    played(WandB(run(tmp_path), environment(tmp_path, WANDB_BASE_URL=url, **proxies)), [1, 2, 3])
    assert history(tmp_path) == [(1, 0.125), (2, 0.25), (3, 0.375)]
    (started,) = [
        record.run for record in records(next(tmp_path.glob("wandb/offline-run-*/*.wandb"))) if record.run.run_id
    ]
    assert (started.run_id, started.project, started.display_name) == ("abcd1234", "codezero", "quick tricky toad")
    assert num_connections(server) == 0
    assert not (tmp_path / "home").exists()


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or subprocess.run(["unshare", "-rn", "true"], check=False).returncode != 0,
    reason="no network namespaces on this machine",
)
def test_offline_needs_no_network_at_all(tmp_path):
    code = f"""
        from tests.unit.observe.trackers import test_wandb as t
        from pathlib import Path
        folder = Path({str(tmp_path)!r})
        t.played(t.WandB(t.run(folder), t.environment(folder)), [1, 2])
    """
    subprocess.run(["unshare", "-rn", sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=120)
    assert history(tmp_path) == [(1, 0.125), (2, 0.25)]


def test_nothing_of_the_machine_or_its_user_is_in_a_run(tmp_path):
    played(WandB(run(tmp_path), environment(tmp_path, USER="planted-user", GITHUB_TOKEN="planted-token")), [1])
    (path,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    kinds = {record.WhichOneof("record_type") for record in records(path)}
    assert [record.run.host for record in records(path) if record.run.run_id] == ["codezero"]
    assert not kinds & {"stats", "output", "output_raw", "environment"}
    assert not list(path.parent.glob("files/*"))  # requirements, metadata, code, console output
    for secret in ("planted", str(tmp_path), "site-packages", sys.executable):
        assert secret.encode() not in path.read_bytes()


def test_the_process_gets_no_secrets_of_other_services():
    given = {
        **{"PATH": "/bin", "HOME": "/home/x", "WANDB_API_KEY": KEY, "https_proxy": "http://p"},
        **{"HUGGINGFACE_ACCESS_TOKEN": "hf_x", "CODEZERO_WALLET_PASSPHRASE": "y", "AWS_SECRET_ACCESS_KEY": "z"},
    }
    assert set(child_environment(given)) == {"PATH", "HOME", "WANDB_API_KEY", "https_proxy"}


def test_online_without_a_key_says_what_to_do_and_asks_nobody(tmp_path):
    with pytest.raises(RuntimeError, match="No API key configured"):
        WandB(run(tmp_path, mode="online"), environment(tmp_path)).open()


def test_online_with_a_server_that_hangs_gives_up_and_names_no_key(tmp_path, nobody_home):
    hanging = WandB(
        run(tmp_path, mode="online", init_s=6.0),
        environment(tmp_path, WANDB_BASE_URL=nobody_home[1], WANDB_API_KEY=KEY),
    )
    begun = time.monotonic()
    with pytest.raises(RuntimeError, match=r"did not begin within 6 s|timed out") as caught:
        hanging.open()
    assert time.monotonic() - begun < 60  # the package's own patience is longer
    assert KEY not in str(caught.value)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()
    assert hanging._process.poll() is not None


def begun_with(tmp_path, package, **more):
    """Begins a run with this source in the package's place."""
    (tmp_path / "wandb.py").write_text(package)
    paths = os.pathsep.join([str(tmp_path), os.getcwd()])
    WandB(run(tmp_path), environment(tmp_path, PYTHONPATH=paths, **more)).open()


def test_a_key_in_the_packages_words_is_taken_out(tmp_path):
    says = "import os\nraise ValueError('refused: ' + os.environ['WANDB_API_KEY'])\n"
    with pytest.raises(RuntimeError, match=r"^refused: \*\*\*$"):
        begun_with(tmp_path, says, WANDB_API_KEY=KEY)


def test_without_the_package_the_extra_is_named(tmp_path):
    with pytest.raises(RuntimeError, match=r"the package wandb is not installed: install the extra tracking"):
        begun_with(tmp_path, "raise ModuleNotFoundError('No module named wandb', name='wandb')\n")


def test_a_run_that_does_not_end_in_time_is_an_error(tmp_path):
    tracker = WandB(run(tmp_path, finish_s=0.5), environment(tmp_path))
    tracker.open()
    (service,) = psutil.Process(tracker._process.pid).children()
    service.suspend()
    try:
        with pytest.raises(RuntimeError, match=r"did not end within 0\.5 s"):
            tracker.close()
    finally:
        service.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_is_not_for_the_run_and_a_killed_node_leaves_nothing_behind(tmp_path, number):
    code = f"""
        from pathlib import Path
        from tests.unit.observe.trackers.test_wandb import *
        folder = Path({str(tmp_path)!r})
        tracker = WandB(run(folder), environment(folder))
        tracker.open()
        tracker.log(1, round_metrics(report(1, reward_mean=0.125)))
        try:
            print(tracker._process.pid, flush=True)
            time.sleep(600)
        except KeyboardInterrupt:
            tracker.log(2, round_metrics(report(2, reward_mean=0.25)))
            tracker.close()
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as node:
        child = psutil.Process(int(node.stdout.readline()))
        left = [child, *child.children(recursive=True)]
        try:
            assert any("wandb-core" in process.name() for process in left)
            os.killpg(node.pid, number)
            node.wait(300)
        finally:
            node.kill()
    assert node.returncode == (0 if number == signal.SIGINT else -number)
    _, alive = psutil.wait_procs(left, timeout=120)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]
    assert history(tmp_path) == [(1, 0.125), (2, 0.25)][: 2 if number == signal.SIGINT else 1]
