"""Examines torch and makes the memory plan: `python -m codezero.doctor.probe key=value ...`.

This is a process of its own because a broken torch may end it (illegal instruction, missing libraries). It prints one
line of JSON for each stage: torch, then the memory plan. Nothing is downloaded, and no weights are read.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries print to standard error, so that standard output has the answers alone
    for name, stage in (("torch", look_at_torch), ("plan", make_plan)):
        try:
            answer = stage()
        except Exception as error:  # the boundary of this process: its parent reports the failure
            answer = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps({"stage": name, **answer}), file=out, flush=True)


def look_at_torch() -> dict[str, Any]:
    import torch

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        has_cuda = torch.cuda.is_available()
    answer: dict[str, Any] = {
        "version": torch.__version__,
        "cuda": torch.version.cuda,
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "mps": torch.backends.mps.is_available(),
        "gpus": [],
        "said": [str(warning.message).splitlines()[0] for warning in said if str(warning.message)],
    }
    if has_cuda:
        answer["kernels"] = torch.cuda.get_arch_list()
        for number in range(torch.cuda.device_count()):
            free, total = torch.cuda.mem_get_info(number)
            major, minor = torch.cuda.get_device_capability(number)
            gpu = {"name": torch.cuda.get_device_name(number), "capability": [major, minor], "free": free}
            answer["gpus"].append({**gpu, "total": total})
    torch.ones(64, 64) @ torch.ones(64, 64)  # a build with instructions that the processor lacks dies here
    return answer


def make_plan() -> dict[str, Any]:
    from codezero.config import Backend
    from codezero.config.load import load_config
    from codezero.errors import CodezeroError
    from codezero.llm import device as devices
    from codezero.llm import store
    from codezero.policy.build import plan_node
    from codezero.runtime.console import Console

    config = load_config(sys.argv[1:])
    try:
        found = plan_node(config, Path(config.state_dir).expanduser(), Console(), downloads=False)
        loads_judge = found.backend is Backend.transformers and found.judge.is_asked(found.backend)
        names = dict.fromkeys([config.model.name, *([found.judge.name] if loads_judge else [])])
        absent = [name for name in names if store.prepared(name, config.model.cache_dir) is None]
    except CodezeroError as error:
        return {"refused": str(error)}
    where = devices.describe(devices.choose_device(config.model.device), found.dtype)
    return {"line": found.line(), "known": found.memory is not None, "absent": absent, "on": where}


if __name__ == "__main__":
    main()
