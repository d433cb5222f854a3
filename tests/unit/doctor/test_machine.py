"""Python, packages, processor, memory and disks that a node would meet."""

import errno
import os
import socket
import sys
from types import SimpleNamespace

import psutil
import pytest

from codezero.config import checkout
from codezero.doctor import installation, machine, swarm
from codezero.llm import catalogue, manifest, store
from codezero.llm.convert import CONVERTER
from codezero.runtime import state
from tests.unit.doctor.cases import case_of, told


def test_a_python_that_is_too_old(tmp_path, monkeypatch):
    case = case_of(tmp_path)
    assert not told(installation.check_python(case), "error")
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    (fault,) = told(installation.check_python(case), "error")
    assert "codezero needs 3.10 to 3.13 | remove .venv and start it anew: PYTHON=python3.12 ./run_rl_swarm.sh" in fault
    monkeypatch.setattr(checkout, "ROOT", None)
    (fault,) = told(installation.check_python(case), "error")
    assert fault.endswith("install codezero for one of these: python3.12 -m venv")


def fake_packages(monkeypatch, required, **installed):
    found = [SimpleNamespace(metadata={"Name": name}, version=version) for name, version in installed.items()]
    monkeypatch.setattr(installation.metadata, "distributions", lambda: found)
    monkeypatch.setattr(installation, "_required", lambda: required)


def test_packages_that_are_missing_or_of_another_version(tmp_path, monkeypatch):
    required = [
        "torch>=2.9,<3",
        "Hydra_Core>=1.3",
        "web3>=8",
        'colorama; sys_platform == "win32"',
        'x; extra == "test"',
    ]
    fake_packages(monkeypatch, required, torch="2.4.0", **{"hydra-core": "1.3.2"})
    findings = list(installation.check_packages(case_of(tmp_path)))
    assert told(findings, "error")[0].startswith("packages: missing: web3>=8 |")
    assert any("torch 2.4.0 (wants <3,>=2.9)" in text for text in told(findings, "warning"))


def test_a_conflict_of_libraries_among_themselves(tmp_path, monkeypatch):
    """hivemind against protobuf was what broke most installations."""
    fake_packages(monkeypatch, [], protobuf="3.19.0")
    asked = {"hivemind": ["protobuf>=5.29.0", 'sphinx; extra == "docs"']}

    def requires(name):
        if name in asked:
            return asked[name]
        raise installation.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installation.metadata, "requires", requires)
    (fault,) = told(installation.check_packages(case_of(tmp_path)), "warning")
    assert "hivemind wants protobuf>=5.29.0, and 3.19.0 is there" in fault
    assert "VersionError" in fault


def test_versions_other_than_the_pinned_ones(tmp_path, monkeypatch):
    (tmp_path / "constraints.txt").write_text(
        "# pins\nnumpy==2.0.0\nwinonly==1 ; sys_platform == 'win32'\nregex==2025.7.1\n\nnotthere==5\n"
    )
    monkeypatch.setattr(checkout, "CONSTRAINTS", tmp_path / "constraints.txt")
    fake_packages(monkeypatch, [], numpy="1.26.4", winonly="9", regex="2025.7.1")
    (drift,) = [
        text for text in told(installation.check_packages(case_of(tmp_path)), "info") if text.startswith("pins")
    ]
    assert "1 differs from scripts/constraints.txt: numpy 1.26.4 (tried with 2.0.0)" in drift


def test_this_installation_has_what_it_needs(tmp_path):
    assert not told(installation.check_packages(case_of(tmp_path)), "error")


def threads(tmp_path, wanted, usable=8, load=1.0):
    return list(machine._threads(case_of(tmp_path, f"model.threads={wanted}"), 8, usable, load))


def test_threads_and_cores(tmp_path):
    assert threads(tmp_path, 0) == []
    assert "set model.threads=0" in told(threads(tmp_path, 9), "warning")[0]
    assert "model.threads=2 of 8 cores" in told(threads(tmp_path, 2), "info")[0]
    (small,) = threads(tmp_path, 0, usable=2)
    assert "this process may use 2 of 8 cores" in told([small], "info")[0]
    assert "model.threads=8 on 2 cores" in told(threads(tmp_path, 8, usable=2), "warning")[0]
    assert "30.0 programs want to run on 8 cores" in told(threads(tmp_path, 0, load=30.0), "warning")[0]


def test_a_processor_without_avx2(tmp_path, monkeypatch):
    monkeypatch.setattr(machine.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(machine, "_cpu_info", lambda _: ("Intel Celeron J1900", []))
    assert any("it has no AVX2" in text for text in told(machine.check_processor(case_of(tmp_path)), "warning"))


def test_memory_that_is_swapped_out_or_not_there(tmp_path, monkeypatch):
    gib = 2**30
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=4 * gib, total=16 * gib))
    monkeypatch.setattr(psutil, "swap_memory", lambda: SimpleNamespace(used=5 * gib, free=3 * gib))
    found = told(machine.check_memory(case_of(tmp_path, "train.memory_limit_gib=6")), "warning")
    assert "swap: 5.0 GiB are swapped out" in found[0]
    assert "train.memory_limit_gib=6, and 4.0 GiB free" in found[1]


def test_folders_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    case = case_of(tmp_path, f"state_dir={tmp_path / 'file' / 'state'}", f"tracking.log_dir={tmp_path / 'broken'}")
    found = told(machine.check_disk(case), "error")
    do = "move it away, or give another"
    assert f"it is not a folder | nothing that is learnt can be saved | {do} state_dir" in found[0]
    assert f"it is a link that leads nowhere | no node can start | {do} tracking.log_dir" in found[1]
    assert len(found) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken", "file"]  # it has left nothing itself


def test_disks_that_are_full(tmp_path, monkeypatch):
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _: SimpleNamespace(free=10**9))
    findings = list(machine.check_disk(case_of(tmp_path)))
    assert "disk of state_dir: 0.9 GiB free" in told(findings, "warning")[0]
    assert "Qwen2.5-Coder-0.5B-Instruct needs 3.1 GB of free disk, and" in told(findings, "error")[0]


def test_weights_that_are_damaged(tmp_path):
    case = case_of(tmp_path)
    model = catalogue.find(case.config.model.name)
    folder = store.folder_of(model.name, case.cache_dir)
    folder.mkdir(parents=True)
    files = {"model.safetensors": manifest.FileRecord(bytes=1, sha256="")}
    made = {"source": model.file, "source_sha256": model.sha256, "converter": CONVERTER}
    manifest.write(folder, manifest.Manifest(name=model.name, **made, files=files))
    (fault,) = [text for text in told(machine.check_disk(case), "warning") if text.startswith("weights")]
    assert f"is damaged | the next start makes it again | {store.pull_command(model.name, tmp_path / 'cache')}" in fault
    assert f"models pull {model.name} --cache-dir {tmp_path / 'cache'}" in fault


@pytest.mark.parametrize(
    ("number", "do"),
    [
        (errno.ENOSPC, "free space, or give another state_dir"),
        (errno.EDQUOT, "free space, or give another state_dir"),
        (errno.EACCES, "correct its rights, or give another state_dir"),
    ],
)
def test_a_disk_that_refuses_to_be_written(tmp_path, monkeypatch, number, do):
    def refuse(**_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(machine.tempfile, "TemporaryFile", refuse)
    found = told(machine.check_disk(case_of(tmp_path)), "error")[0]
    assert os.strerror(number) in found
    assert found.endswith(f"| {do}")


def test_a_port_that_is_taken_and_one_that_is_not(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        case = case_of(tmp_path, "swarm=native", f"swarm.listen=[/ip4/127.0.0.1/tcp/{port}]")
        (fault,) = told(swarm.check_ports(case), "error")
        assert f"tcp port {port} of 127.0.0.1 (Address already in use) | the p2p daemon does not start" in fault
        with state.locked_state(tmp_path / "state" / "proposer"):  # it is the one that listens
            assert told(swarm.check_ports(case), "error") == []
    assert told(swarm.check_ports(case), "ok") == [f"swarm.listen: /ip4/127.0.0.1/tcp/{port} is free |  | "]
    case = case_of(tmp_path, "swarm=native", "swarm.listen=[/ip4/203.0.113.1/tcp/4001]")  # another machine's address
    (fault,) = told(swarm.check_ports(case), "error")
    assert "203.0.113.1 (Cannot assign requested address)" in fault
    assert fault.endswith("or give another address or port")


def test_a_program_that_has_a_port_is_found_for_udp_too(tmp_path):
    with socket.socket(type=socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        listen = f"/ip4/127.0.0.1/udp/{other.getsockname()[1]}/quic"
        (fault,) = told(swarm.check_ports(case_of(tmp_path, "swarm=native", f"swarm.listen=[{listen}]")), "error")
    assert "`ss -ltunp`" in fault


def test_addresses_that_cannot_be_listened_on_or_reached(tmp_path):
    case = case_of(
        tmp_path, "swarm=native", "swarm.listen=[/ip4/0.0.0.0]", "swarm.announce=[/ip4/203.0.113.7/tcp/4001]"
    )
    assert "swarm.listen: /ip4/0.0.0.0: it is not of the form" in told(swarm.check_ports(case), "error")[0]
    case = case_of(tmp_path, "swarm=native", "swarm.announce=[/ip4/203.0.113.7/tcp/4001]")
    assert "others dial a port on which nobody listens" in told(swarm.check_ports(case), "warning")[0]
    assert list(swarm.check_ports(case_of(tmp_path, "swarm=alone"))) == []
