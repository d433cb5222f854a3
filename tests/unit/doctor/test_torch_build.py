"""Torch that is broken, missing, slow, or built for other hardware."""

import sys

import pytest

from codezero.config import Device
from codezero.doctor import probe, torch_build
from tests.builders import save_tiny
from tests.commands import executable
from tests.unit.doctor.cases import case_of, told

RTX = {"name": "NVIDIA GeForce RTX 5090", "capability": [12, 0], "free": 30 * 2**30, "total": 32 * 2**30}
SEEN = {"version": "2.9", "cuda": "12.6", "cpu": "AVX2", "mps": False, "gpus": [], "said": []}


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setattr(torch_build, "LIMIT_S", 300.0)


def broken(folder, source):
    package = folder / "fake" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(source)
    return {"PYTHONPATH": str(package.parent)}


@pytest.mark.parametrize(
    ("source", "found", "means"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "by SIGILL", "lacks instructions"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "by SIGSEGV", "its build is broken"),
        ("raise OSError('libcudart.so.12: cannot open shared object file')", "libcudart.so.12", "no node can start"),
        ("raise ImportError('torch is not here')", "torch is not here", "no node can start"),
        ("raise SystemExit(3)", "exit code 3", "no node can start"),
    ],
)
def test_a_torch_that_ends_its_process_is_a_finding(tmp_path, source, found, means):
    (fault,) = torch_build.check(case_of(tmp_path, "preset=local", **broken(tmp_path, source)))
    assert fault.severity.value == "error"
    assert found in fault.found
    assert means in fault.means
    assert "run_rl_swarm.sh" in fault.do


def test_a_torch_that_hangs_is_left_after_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(torch_build, "LIMIT_S", 0.5)
    (fault,) = torch_build.check(case_of(tmp_path, **broken(tmp_path, "import time; time.sleep(600)")))
    assert fault.severity.value == "warning"
    assert "not imported within" in fault.found


def test_the_plan_is_the_nodes_own(tmp_path, capsys, monkeypatch):
    from codezero.policy.build import Models
    from codezero.runtime.console import Console

    model = save_tiny(tmp_path / "model")
    case = case_of(tmp_path, "preset=local", f"model.name={model}", f"evaluator.model={model}", "model.device=cpu")
    findings = planned(case, monkeypatch)
    (plan,) = [finding.found for finding in findings if finding.name == "plan"]
    Models(case.config, tmp_path / "state", Console())
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("plan: ")]
    assert line.partition("; ")[0].removeprefix("plan: ") in plan  # what is free differs from moment to moment
    assert not told(findings, "error")


def planned(case, monkeypatch):
    """The same in this process, which has torch already."""
    monkeypatch.setattr(sys, "argv", ["probe", *case.settings])
    return list(torch_build.plan(probe.make_plan()))


def test_a_model_that_does_not_fit_is_told_with_the_ways_out(tmp_path, monkeypatch):
    case = case_of(tmp_path, "preset=local", "train.memory_limit_gib=1", "model.device=cpu")
    (fault,) = told(planned(case, monkeypatch), "error")
    assert fault.startswith("plan: training with train.method=lora needs ")
    assert "of memory where 1.0 GiB can be used" in fault


def test_weights_that_are_not_here_are_planned_for_and_not_fetched(tmp_path, monkeypatch):
    findings = planned(case_of(tmp_path, "preset=local", "train.memory_limit_gib=20"), monkeypatch)
    assert "lora: " in told(findings, "ok")[0]
    assert "not here yet: Qwen2.5-Coder-0.5B-Instruct" in told(findings, "info")[0]
    assert not (tmp_path / "cache").exists()


def test_a_model_of_unknown_size_is_no_error(tmp_path, monkeypatch):
    findings = planned(case_of(tmp_path, "preset=local", "model.name=org/unheard-of"), monkeypatch)
    assert "is known once its weights are here" in told(findings, "info")[0]
    assert not told(findings, "error")


def gpus(tmp_path, torch, seen, device=Device.auto):
    case = case_of(tmp_path)
    case.config.model.device = device
    return list(torch_build.gpus(case, {**SEEN, **torch}, seen))


def test_a_gpu_without_kernels_is_named_with_the_torch_that_has_them(tmp_path):
    torch = {"gpus": [RTX], "kernels": ["sm_80", "sm_90", "compute_90"]}
    (fault,) = told(gpus(tmp_path, torch, [RTX["name"]]), "warning")
    assert "RTX 5090 (sm_120), 30.0 of 32.0 GiB free; this torch has kernels for sm_80, sm_90" in fault
    assert "no kernel image is available" in fault
    assert "CUDA 12.8" in fault
    assert told(gpus(tmp_path, torch, [RTX["name"]], Device.cuda), "error")


@pytest.mark.parametrize("kernels", [["sm_120"], ["sm_90", "sm_120"]])
def test_a_gpu_with_kernels_is_fine(tmp_path, kernels):
    assert told(gpus(tmp_path, {"gpus": [RTX], "kernels": kernels}, None), "ok")


def test_a_later_minor_runs_what_was_built_for_an_earlier_one(tmp_path):
    card = {**RTX, "capability": [8, 6]}
    assert told(gpus(tmp_path, {"gpus": [card], "kernels": ["sm_80"]}, None), "ok")
    assert told(gpus(tmp_path, {"gpus": [card], "kernels": ["sm_89"]}, None), "warning")


def test_a_gpu_that_torch_does_not_use(tmp_path):
    (idle,) = told(gpus(tmp_path, {"cuda": None}, ["NVIDIA H200"]), "warning")
    assert "NVIDIA H200 there, and this torch is built for the CPU only | the GPU is not used" in idle
    (old,) = told(gpus(tmp_path, {"said": ["The NVIDIA driver on your system is too old"]}, ["NVIDIA H200"]), "warning")
    assert "(The NVIDIA driver on your system is too old)" in old
    assert "update the NVIDIA driver" in old
    assert told(gpus(tmp_path, {}, None, Device.cuda), "error")
    assert told(gpus(tmp_path, {}, None, Device.mps), "error")
    assert told(gpus(tmp_path, {}, None), "info") == ["GPU: none: the CPU is used |  | "]


def test_what_nvidia_smi_lists(tmp_path):
    tool = executable(tmp_path / "nvidia-smi", "#!/bin/sh\necho 'NVIDIA H200'\necho\n")
    assert torch_build.nvidia_smi(case_of(tmp_path, PATH=str(tmp_path))) == ["NVIDIA H200"]
    tool.write_text("#!/bin/sh\necho 'no devices were found'; exit 6\n")
    assert torch_build.nvidia_smi(case_of(tmp_path, PATH=str(tmp_path))) is None
    assert torch_build.nvidia_smi(case_of(tmp_path, PATH=str(tmp_path / "nowhere"))) is None


def test_beside_a_running_node_nothing_is_planned(tmp_path, monkeypatch):
    from codezero.runtime import state

    seen = {"torch": {**SEEN, "stage": "torch"}, "plan": {"refused": "needs 10 GiB: buy some"}}
    monkeypatch.setattr(torch_build, "_asked", lambda case: (0, seen, ""))
    case = case_of(tmp_path)
    assert any(text.startswith("plan: needs 10 GiB") for text in told(torch_build.check(case), "error"))
    with state.locked_state(tmp_path / "state"):
        findings = list(torch_build.check(case))
    assert not told(findings, "error")
    (found,) = [text for text in told(findings, "info") if "a node runs on this state folder" in text]
    assert f"codezero status {tmp_path / 'state'} shows its memory" in found
