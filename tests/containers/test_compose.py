"""docker-compose.yaml on a real engine, with tiny models: the `local` profile with its bootnode, proposer and two
solvers, and a node by itself as `docker-compose run` starts it.

Both are started by the oldest version of compose that is there and, once they are down, by the newest, which finds the
same volumes: what a user has who updates.
"""

import http.client
import json
import os
import re

import pytest

from tests.builders import save_tiny
from tests.containers.compose import Project
from tests.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SERVICES = ("bootnode", "proposer", "solver-1", "solver-2")
ALONE, DASHBOARD = "swarm-cpu", "dashboard"
SOLVERS = ("solver-1", "solver-2")
MODELS = "/home/codezero/.cache"
TINY = f"{MODELS}/tiny"
USER = 1000
SETTINGS = (
    # Long random answers in groups of 8 to short tasks: some end by themselves and some do not, so rewards differ.
    "tasks=mbpp",
    f"tasks.mbpp.path={MODELS}/mbpp.jsonl",
    "rollout.num_generations=8",
    "rollout.max_new_tokens=100",
    "swarm.num_local=2",
    "probe.share=0",
    *(f"model.name={TINY}", f"evaluator.model={TINY}", f"proposer.model={TINY}", "model.device=cpu"),
    *("train.method=full", "train.learning_rate=1e-3", "swarm.patience=3", "proposer.max_new_tokens=64"),
)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """What the volume of models holds, as a folder of the host; its owner is the container's user."""
    folder = tmp_path_factory.mktemp("models")
    save_tiny(folder / "tiny", max_position_embeddings=8192)
    rows = [
        {"task_id": number, "text": f"Add {number}.", "test_list": [f"assert f(1) == {number + 1}"]}
        for number in range(601, 641)
    ]
    (folder / "mbpp.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o644)
    return folder


@pytest.fixture(scope="module")
def project(engine, image, full_image, context, composers, models, tmp_path_factory):
    images = tmp_path_factory.mktemp("compose") / "images.yaml"
    services = {ALONE: {"image": full_image}} | {service: {"image": image} for service in (*SERVICES, DASHBOARD)}
    images.write_text(json.dumps({"services": services}))
    variables = {
        "CODEZERO_MODELS": str(models),
        "CODEZERO_SETTINGS": " ".join(SETTINGS),
        "CODEZERO_SIGN_IN_PORT": str(free_port()),
        "CODEZERO_DASHBOARD_PORT": str(free_port()),
    }
    project = Project(
        engine=engine,
        files=[context / "docker-compose.yaml", images],
        name=f"codezero-test-{os.getpid()}",
        command=composers[0],
        variables=variables,
    )
    try:
        yield project
    finally:
        project.compose("down", "--volumes", "--timeout", "5", check=False)


@pytest.mark.parametrize("version", [0, -1], ids=["oldest", "newest"])
def test_the_script_finds_its_sign_in_app_built_and_only_this_machine_reaches_it(project, composers, version):
    project.command = composers[version]
    port = int(project.variables["CODEZERO_SIGN_IN_PORT"])
    name = f"{project.name}-sign-in"
    script = ("--testnet", "--sign-in", "app", "--sign-in-minutes", "5")
    project.compose("run", "--detach", "--service-ports", "--name", name, ALONE, *script)
    try:
        project.wait_until(lambda: answer(port, "/api/health") is not None, "an answer of the sign-in app", 120)
        assert answer(port, "/api/health")["alchemy"].startswith("unreachable: ")
        (found,) = json.loads(project.engine.run("inspect", name).stdout)
        assert found["HostConfig"]["ReadonlyRootfs"]
        assert (found["HostConfig"]["Memory"], found["HostConfig"]["PidsLimit"]) == (16 << 30, 2048)
        assert answer(port, "/api/machine") == {
            "error": "only for the user of this app: send the token in temp-data/token"
        }
        assert found["HostConfig"]["PortBindings"] == {f"{port}/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(port)}]}
        said = project.engine.run("logs", name).stdout
        (ticket,) = re.findall(rf"sign-in: open http://localhost:{port}/(\?ticket=[\w-]{{43}}) in a browser", said)
        assert [letting_in(port, ticket) for _ in range(2)] == [303, 403]
        assert "installing" not in said
        assert "building" not in said
    finally:
        project.engine.run("rm", "--force", name, check=False)


def answer(port, path):
    """What the app says in JSON; None while it cannot be reached."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def letting_in(port, ticket):
    """The status that a browser gets for an address with a ticket."""
    connection = http.client.HTTPConnection("localhost", port, timeout=10)
    connection.request("GET", f"/{ticket}")
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_node_by_itself_keeps_its_key_and_its_rounds_in_volumes(project, composers):
    outputs = []
    for project.command in (composers[0], composers[-1]):
        arguments = [setting for setting in SETTINGS if not setting.startswith("swarm.")]
        network = ("preset=local", "swarm=native")  # one that nobody else is in: it makes a key
        ended = project.compose("run", "--rm", "-T", ALONE, "--rounds", "1", *network, *arguments)
        assert "done: 1 round " in ended.stdout
        outputs.append(ended.stdout)
    assert "state: new in state" in outputs[0]
    assert "state: continuing in state after round 1" in outputs[1]
    first, second = (re.findall(r"^peer: (\w+),", output, re.M) for output in outputs)
    assert first == second
    looked = project.compose("run", "--rm", "-T", "--entrypoint", "stat -c %a:%u keys/swarm.pem", ALONE)
    assert looked.stdout.split()[-1] == f"600:{USER}"
    settings = project.compose("run", "--rm", "-T", "--entrypoint", "head -1 configs/node.yaml", ALONE)
    assert "The settings of a node" in settings.stdout


def up(project):
    project.compose("up", "--detach", "--no-build")
    project.wait_until(lambda: all(health(project, service) == "healthy" for service in SERVICES), "health")


def health(project, service):
    return project.inspect(service)["State"]["Health"]["Status"]


def reports(project, service, file="rounds.jsonl"):
    shown = project.execute(service, "cat", f"/data/logs/{file}", check=False)
    return [json.loads(line) for line in shown.stdout.splitlines()] if shown.returncode == 0 else []


def peer_id(project, service):
    return re.findall(r"^peer: (\w+),", project.logs(service), re.M)[-1]


def have_learnt_from_each_other(project):
    return all(any(report["num_external_groups"] for report in reports(project, service)) for service in SOLVERS)


def test_a_swarm_learns_stops_cleanly_and_goes_on_under_another_version_of_compose(project, composers):
    up(project)
    project.wait_until(lambda: have_learnt_from_each_other(project), "learning from each other")
    project.wait_until(lambda: reports(project, "proposer", "proposals.jsonl"), "a batch of problems")
    for service in (*SERVICES, DASHBOARD):
        assert_confined(project, service)
    too_late = project.execute("solver-1", "codezero", "health", "/data/state", "--within", "1s", check=False)
    assert "the node in /data/state (process " in too_late.stdout
    peers = {service: peer_id(project, service) for service in SERVICES}
    assert len(set(peers.values())) == len(SERVICES)
    assert_shown(project, {service: peers[service] for service in SOLVERS}, "running")

    project.compose("stop")
    for service in (*SERVICES, DASHBOARD):
        state = project.inspect(service)["State"]
        assert (state["ExitCode"], state["OOMKilled"]) == (0, False), project.logs(service)[-3000:]
    assert all("\ndone: " in project.logs(service) for service in SOLVERS)
    project.compose("start", DASHBOARD)  # nobody has a ledger open now
    assert_shown(project, {service: peers[service] for service in SOLVERS}, "stopped")
    project.compose("down")

    project.command = composers[-1]
    up(project)
    rounds = {service: resumed_after(project, service) for service in SOLVERS}
    project.wait_until(
        lambda: all(len(reports(project, service)) > rounds[service] for service in SOLVERS),
        "a round after the restart",
    )
    assert {service: peer_id(project, service) for service in SERVICES} == peers
    for service in SOLVERS:
        numbers = [report["round"] for report in reports(project, service)]
        assert numbers == list(range(1, len(numbers) + 1))  # each round once, over both lives
    shown = project.execute("solver-1", "codezero", "leaderboard", "--ledger", "/shared/ledger.sqlite").stdout
    assert all(peers[service] in shown for service in SOLVERS)


def assert_shown(project, peers, state):
    """Nodes and their ledger, as a browser on this machine and commands in the dashboard's container have them."""
    port = int(project.variables["CODEZERO_DASHBOARD_PORT"])
    project.wait_until(lambda: answer(port, "/api/nodes") is not None, "an answer of the dashboard", 60)
    nodes = {node["name"]: node for node in answer(port, "/api/nodes")}
    assert set(nodes) == {"proposer", *peers}
    assert {node["presence"]["state"] for node in nodes.values()} == {state}
    assert {name: nodes[name]["status"]["peer_id"] for name in peers} == peers
    board = answer(port, "/api/leaderboard")
    assert {place["peer_id"] for place in board["places"]} >= set(peers.values())
    assert board["problem"] == ""
    assert project.execute(DASHBOARD, "codezero", "report", "/nodes", "--out", "-").stdout.count("<!doctype html>") == 1


def resumed_after(project, service):
    project.wait_until(lambda: "\nstate: " in project.logs(service), "its state")  # it may be healthy before
    (number,) = re.findall(r"^state: continuing in /data/state after round (\d+)$", project.logs(service), re.M)
    return int(number)


def assert_confined(project, service):
    found = project.inspect(service)
    assert project.execute(service, "id", "-u").stdout.split()[-1] == str(USER)
    assert found["HostConfig"]["ReadonlyRootfs"]
    assert found["HostConfig"]["CapDrop"] == ["ALL"]
    assert "no-new-privileges:true" in found["HostConfig"]["SecurityOpt"]
    assert found["HostConfig"]["Memory"] >= 1 << 30
    assert 128 <= found["HostConfig"]["PidsLimit"] <= 1024
    published = found["HostConfig"]["PortBindings"] or {}
    assert list(published) == ([f"{project.variables['CODEZERO_DASHBOARD_PORT']}/tcp"] if service == DASHBOARD else [])
    assert {binding["HostIp"] for bindings in published.values() for binding in bindings} <= {"127.0.0.1"}
    status = project.execute(service, "cat", "/proc/1/status").stdout
    assert re.search(r"^CapEff:\s+0+$", status, re.M)
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.M)
