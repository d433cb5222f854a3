"""Checks of torch, the GPUs it can use, and the memory plan, by the answers of a separate process (`probe`)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from codezero.config import Device, checkout
from codezero.doctor.case import ExaminedNode
from codezero.doctor.finding import Finding, error, info, ok, refusal, warning

LIMIT_S = 16.0
_AGAIN = (
    "remove .venv and start ./run_rl_swarm.sh; TORCH=... chooses another build, CPU_ONLY=1 one without CUDA"
    if checkout.ROOT
    else "install another build of torch: https://pytorch.org/get-started lists them"
)


def check(case: ExaminedNode) -> Iterator[Finding]:
    code, stages, complaint = _asked(case)
    torch, planned = stages.get("torch"), stages.get("plan")
    if torch is None:
        yield _no_torch(code, complaint)
        return
    if "failed" in torch:
        yield error("torch", f"cannot be imported: {torch['failed']}", "no node can start", _AGAIN)
        return
    build = f"for CUDA {torch['cuda']}" if torch["cuda"] else "for the CPU"
    yield ok("torch", f"torch {torch['version']}, {build}; this processor: {torch['cpu']}")
    yield from gpus(case, torch, nvidia_smi(case))
    if planned is None:
        yield _no_plan(code)
    else:
        yield from _beside_a_node(case, planned) if case.is_running else plan(planned)


def gpus(case: ExaminedNode, torch: Mapping[str, Any], seen: list[str] | None) -> Iterator[Finding]:
    """Compares the GPUs that torch reports with those that the driver reports (`seen`; None without a driver)."""
    wanted = case.config.model.device
    for gpu in torch["gpus"]:
        yield _gpu(gpu, torch["kernels"], wanted)
    if torch["mps"]:
        yield ok("GPU", "an Apple GPU (MPS)")
    elif wanted is Device.mps:
        yield error("GPU", "model.device=mps, and there is no Apple GPU", "no node can start", "use model.device=auto")
    if torch["gpus"] or (not seen and wanted is not Device.cuda):
        if not torch["gpus"] and not torch["mps"]:
            yield info("GPU", "none: the CPU is used")
        return
    named = f"{', '.join(seen)} there, " if seen else "model.device=cuda, "
    make = error if wanted is Device.cuda else warning
    means = "no node can start" if wanted is Device.cuda else "the GPU is not used"
    if not torch["cuda"]:
        found = f"{named}and this torch is built for the CPU only"
        do = "remove .venv and start ./run_rl_swarm.sh without CPU_ONLY" if checkout.ROOT else _AGAIN
        yield make("GPU", found, means, do)
    else:
        said = f" ({torch['said'][0]})" if torch["said"] else ""
        yield make("GPU", f"{named}and torch sees no usable CUDA device{said}", means, "update the NVIDIA driver")


def _gpu(gpu: Mapping[str, Any], kernels: list[str], wanted: Device) -> Finding:
    major, minor = gpu["capability"]
    found = f"{gpu['name']} (sm_{major}{minor}), {gpu['free'] / 2**30:.1f} of {gpu['total'] / 2**30:.1f} GiB free"
    # As llm/device.py: a cubin runs on every later minor of its major version.
    if any(name.startswith("sm_") and name[3:-1] == str(major) and int(name[-1]) <= minor for name in kernels):
        return ok("GPU", found)
    make = error if wanted is Device.cuda else warning
    found += f"; this torch has kernels for {', '.join(kernels) or 'none'}"
    means = "no node can start" if wanted is Device.cuda else "the CPU is used instead"
    do = "install a torch that has them (RTX 50xx, sm_120: one built for CUDA 12.8 or later), or set model.device=cpu"
    return make("GPU", found, f"it would say `no kernel image is available`; {means}", do)


def nvidia_smi(case: ExaminedNode) -> list[str] | None:
    """Returns the names of the GPUs that the driver reports, or None without a driver."""
    said = case.said_by("nvidia-smi", "--query-gpu=name", "--format=csv,noheader", limit_s=6)
    return None if said is None else [line.strip() for line in said.splitlines() if line.strip()]


def _asked(case: ExaminedNode) -> tuple[int | None, dict[str, dict[str, Any]], str]:
    """Runs the probe and returns its exit code (None if it took too long), its answers by stage, and the last line of
    its standard error."""
    command = [sys.executable, "-m", "codezero.doctor.probe", *case.settings]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=case.child_environment,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            out, err = process.communicate(timeout=LIMIT_S)
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            code = None
    stages = {}
    for line in out.splitlines():
        try:
            answer = json.loads(line)
            stages[answer["stage"]] = answer
        except (ValueError, KeyError, TypeError):
            continue
    return code, stages, (err.strip().splitlines() or [""])[-1]


def _no_torch(code: int | None, complaint: str) -> Finding:
    if code is None:
        means = "this machine or its disk is very busy, or torch hangs"
        do = "try again when less runs here; else " + _AGAIN
        return warning("torch", f"not imported within {LIMIT_S:.0f} s", means, do)
    if code < 0:
        name = signal.Signals(-code).name if -code in list(signal.Signals) else str(-code)
        why = "this processor lacks instructions that the build uses" if name == "SIGILL" else "its build is broken"
        return error("torch", f"importing it ended the process by {name}", f"{why}; no node can start", _AGAIN)
    return error("torch", f"importing it ended with exit code {code}: {complaint}", "no node can start", _AGAIN)


def _no_plan(code: int | None) -> Finding:
    if code is None:
        found = f"no result within {LIMIT_S:.0f} s"
        return warning("plan", found, "this machine is very busy", "a node prints its plan at start")
    return warning("plan", f"its process ended with exit code {code}", "perhaps memory ran out", "see `memory`")


def _beside_a_node(case: ExaminedNode, answer: Mapping[str, Any]) -> Iterator[Finding]:
    """Reports that the plan is skipped while a node runs: free memory is then what the node leaves, so it does not tell
    whether the node itself fits."""
    found = "a node runs on this state folder, and has made its own"
    yield info("plan", found, do=f"{case.status_command} shows its memory")
    if "failed" in answer:
        yield from plan(answer)


def plan(answer: Mapping[str, Any]) -> Iterator[Finding]:
    """Reports the probe's memory plan, or why there is none."""
    if "failed" in answer:
        means = "no node can start: a package is missing or damaged"
        yield error("plan", f"cannot be made: {answer['failed']}", means, _AGAIN)
        return
    if "refused" in answer:
        yield refusal("plan", str(answer["refused"]), "a node stops with this before it loads anything")
        return
    where = f"on {answer['on']}: "
    if answer["known"]:
        yield ok("plan", where + answer["line"])
    else:
        yield info("plan", where + answer["line"], "what the model needs is known once its weights are here")
    if answer["absent"]:
        yield info("weights", f"not here yet: {', '.join(answer['absent'])}", "the first start downloads them")
