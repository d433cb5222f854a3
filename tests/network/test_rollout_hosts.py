"""A rollout server and the node that it samples for on two hosts, and a cable that is out for a while."""

import sys
import time

import pytest

from tests.builders import save_tiny
from tests.commands import spawn
from tests.e2e.test_node import command
from tests.network.hosts import NoNamespaces, hosts
from tests.tiny_node import reports

pytestmark = pytest.mark.slow

LONG = ("rollout.max_new_tokens=1200", "swarm.num_local=2", "rollout.num_generations=4")
"""Some seconds of sampling."""


def inside(host, *arguments):
    return spawn(["ip", "netns", "exec", host.namespace, *arguments])


@pytest.fixture
def pair():
    try:
        with hosts(2) as found:
            yield found
    except NoNamespaces as error:
        pytest.skip(f"no network namespaces on this machine: {error}")


def test_a_link_that_is_lost_for_a_while_costs_the_wait_alone(pair, tmp_path):
    fast, slow = pair
    model = save_tiny(tmp_path / "model")
    file = tmp_path / "server.yaml"
    serve = (sys.executable, "-m", "codezero", "rollout", "serve", "--host", fast.address, "--file", str(file))
    server = inside(fast, *serve, f"model.name={model}", "model.device=cpu", "model.threads=1")
    line = next(line for line in server.stdout if "(Ctrl-C ends it)" in line)
    assert f"http://{fast.address}:7070" in line
    remote = ("rollout.engine=remote", f"rollout.servers=[{file}]", "rounds=3")
    node = inside(slow, *command(model, tmp_path, *LONG, *remote))
    try:
        assert any(line.startswith("round 1 ") for line in node.stdout)
        slow.is_connected(False)
        time.sleep(8)
        slow.is_connected(True)
        rest, _ = node.communicate(timeout=600)
    finally:
        for process in (node, server):
            process.kill()
        served, _ = server.communicate()
    assert node.returncode == 0, rest
    assert "is left out" not in rest
    assert [report["round"] for report in reports(tmp_path)] == [1, 2, 3]
    assert max(report["seconds"]["solve"] for report in reports(tmp_path)) > 7
    assert served.count("rollouts: ") in (3, 4)
