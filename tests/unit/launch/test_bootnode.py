"""A real bootnode as a process, on loopback."""

import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import psutil
import pytest

from codezero.config import Network
from codezero.config.load import load_config
from codezero.config.multiaddr import Multiaddr
from codezero.errors import OUTAGE
from codezero.identity import key as identity
from tests.commands import spawn
from tests.processes import wait_until, wait_until_gone

ANYWHERE = "/ip4/127.0.0.1/tcp/0"


def start(folder, listen=ANYWHERE, *options):
    return spawn(
        [
            *(sys.executable, "-m", "codezero", "swarm", "bootnode", "--stop-with-parent", "--listen", listen),
            *("--identity", str(folder / "bootnode.pem"), *options),
        ],
        stdin=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # nohup has it ignored
    )


def ending(process):
    """Exit code and the rest of the output; unlike communicate() this leaves standard input open."""
    output = process.stdout.read()
    return process.wait(timeout=120), output


@contextmanager
def running(folder):
    process = start(folder)
    process.line = next(line.strip() for line in process.stdout if line.startswith("bootnode "))
    process.daemons = [child.pid for child in psutil.Process(process.pid).children()]
    assert len(process.daemons) == 1
    yield process
    process.kill()
    ending(process)


@pytest.fixture
def bootnode(tmp_path):
    with running(tmp_path) as process:
        yield process


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A bootnode for tests that leave it running, and its folder."""
    folder = tmp_path_factory.mktemp("bootnode")
    with running(folder) as process:
        yield process, folder


def test_a_bootnode_says_where_it_is_under_an_identity_that_it_keeps(shared):
    bootnode, folder = shared
    own = identity.load(folder / "bootnode.pem")
    _, peer_id, _, _, address = bootnode.line.split(" ")
    found = Multiaddr.parse(address)
    assert (peer_id, found.peer, found.host) == (own.peer_id, own.peer_id, "127.0.0.1")
    socket.create_connection(("127.0.0.1", found.port), timeout=10).close()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, "parent gone"])
def test_a_bootnode_stops_when_asked_and_leaves_no_daemon(bootnode, end):
    bootnode.stdin.close() if end == "parent gone" else bootnode.send_signal(end)
    code, output = ending(bootnode)
    assert code == 0
    assert output.endswith("bootnode stopped\n")
    wait_until_gone(bootnode.daemons)


def test_a_killed_bootnode_leaves_no_daemon(bootnode):
    bootnode.kill()
    wait_until_gone(bootnode.daemons)


def test_a_bootnode_without_its_daemon_starts_another_on_the_same_port(bootnode):
    port = Multiaddr.parse(bootnode.line.split(" ")[-1]).port
    psutil.Process(bootnode.daemons[0]).kill()
    wait_until_gone(bootnode.daemons)
    wait_until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
    bootnode.terminate()
    assert ending(bootnode)[0] == 0


def test_a_port_that_is_taken_is_refused_though_the_daemon_would_share_it(tmp_path, shared):
    bootnode, _ = shared
    port = Multiaddr.parse(bootnode.line.split(" ")[-1]).port
    code, output = ending(start(tmp_path, f"/ip4/127.0.0.1/tcp/{port}"))
    assert code == OUTAGE  # the port may be free later
    assert output.startswith(f"error: cannot listen on tcp port {port} of 127.0.0.1 (Address already in use): give")


def test_a_listen_address_that_is_none_is_refused(tmp_path):
    code, output = ending(start(tmp_path, "localhost:4001"))
    assert code == 1
    assert output.startswith("error: --listen=localhost:4001 is not an address: it is not of the form /ip4/")


@pytest.mark.parametrize("announced", [(), ("--announce", "/dns/bootnode/tcp/4001")])
def test_a_bootnode_writes_the_swarm_file_that_leads_to_it(tmp_path, announced):
    file = tmp_path / "invite.yaml"
    process = start(tmp_path, ANYWHERE, "--invite", str(file), *announced)
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("copy "):
                break
        joins = "./run_rl_swarm.sh --join invite.yaml, or .venv/bin/codezero run swarm=invite.yaml"
        assert lines[-1] == f"copy {file} to another machine and run there: {joins}\n"
        by_file, by_address = load_config([f"swarm={file}"]), load_config(["swarm=native"])
        assert by_file.rollout.num_generations == by_address.rollout.num_generations
        config = by_file.swarm
        peer_id = identity.load(tmp_path / "bootnode.pem").peer_id
        (address,) = config.bootnodes
        found = Multiaddr.parse(address)
        assert (found.host, found.peer) == ("bootnode" if announced else "127.0.0.1", peer_id)
        assert (config.network, config.name) == (Network.native, "codezero")
    finally:
        process.terminate()
        ending(process)
