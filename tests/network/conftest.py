from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.network.nodes import live_swarm

GENRL = "gensyn-genrl==0.3.0 --hash=sha256:74b2dfd453d7b60ba966848bc923beffcdb8bb503a824386f4ebfcba34d0e527\n"


@pytest.fixture
def swarm(tmp_path):
    """Makes live nodes; see `nodes`."""
    with live_swarm(tmp_path) as made:
        yield made


@pytest.fixture(scope="session")
def genrl_env(request) -> dict[str, str]:
    """The environment of a process that can import the real GenRL 0.3.0, which lies in a folder of its own.

    Its dependencies are left out: what the codec and the backend need, we have. Skips where the package index is out of
    reach.
    """
    cache = request.config.cache.mkdir("genrl")
    folder = cache / "0.3.0"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            requirements = Path(scratch) / "requirements.txt"
            requirements.write_text(GENRL)
            target = Path(scratch) / "target"
            arguments = ["install", "--quiet", "--no-deps", "--target", str(target), "--requirement", str(requirements)]
            pip = subprocess.run([sys.executable, "-m", "pip", *arguments], capture_output=True, text=True)
            assert "DO NOT MATCH THE HASHES" not in pip.stderr, pip.stderr
            if pip.returncode != 0:
                pytest.skip(f"gensyn-genrl 0.3.0 cannot be had: {pip.stderr.strip().splitlines()[-1]}")
            with suppress(OSError):  # another test run was faster
                target.rename(folder)
    return {**os.environ, "PYTHONPATH": str(folder)}


class GenrlPeer:
    """A running genrl_peer.py."""

    def __init__(self, process: subprocess.Popen) -> None:
        self._process = process
        self.peer_id = self._answer()["peer_id"]

    def gather(self, round_number: int, tasks: list[dict]) -> dict[str, list[dict]]:
        """Publishes the tasks for a round and waits for the peers'; what came, by peer id."""
        print(json.dumps({"round": round_number, "tasks": tasks}), file=self._process.stdin, flush=True)
        answer = self._answer()
        assert "received" in answer, answer
        return answer["received"]

    def put_and_get(self, key: str, value: list[dict]) -> dict[str, list[dict]]:
        """Puts a value as GenRL's proposers and solvers do, and gets what all have put, by peer id."""
        print(json.dumps({"key": key, "value": value}), file=self._process.stdin, flush=True)
        return self._answer()["received"]

    def _answer(self) -> dict:
        line = self._process.stdout.readline()
        assert line, "the GenRL process has ended; its stderr is above"
        return json.loads(line)


@pytest.fixture
def start_genrl_peer(genrl_env):
    """Call it with the addresses to join through and how many peers a gather waits for."""
    with ExitStack() as stack:

        def start(initial_peers, world_size: int) -> GenrlPeer:
            script = str(Path(__file__).with_name("genrl_peer.py"))
            process = subprocess.Popen(
                [sys.executable, script, "--timeout", "60", *map(str, initial_peers)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**genrl_env, "HIVEMIND_WORLD_SIZE": str(world_size)},
                start_new_session=True,
            )
            stack.callback(end, process)
            return GenrlPeer(process)

        yield start


def end(process: subprocess.Popen) -> None:
    """Lets it finish by itself, and then ends what is left of it: the DHT's process and the p2p daemon."""
    process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(10)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
