"""The memory plan of a node with the default model, for a machine that is only imagined."""

from dataclasses import replace

import torch

from codezero.config import TrainMethod
from codezero.config.load import load_config
from codezero.policy import build
from codezero.train.memory import GIB, estimate
from codezero.train.method import SMALLEST
from codezero.workers.pool import WORKER_BYTES


def planned_gib(method: TrainMethod, device_type: str, settings: list[str], workers: int) -> float:
    """GiB that a node with these settings plans with, judged by the weights that it starts from."""
    config = load_config(settings)
    dtype = torch.bfloat16 if device_type == "cuda" else torch.float32
    judge_bytes = SMALLEST.num_parameters * dtype.itemsize
    load = build.workload(config, device_type, dtype, judge_bytes, evaluator_is_base=True)
    workers_bytes = 0 if device_type == "cuda" else workers * WORKER_BYTES  # they are not on the GPU
    return estimate(SMALLEST, method, config.train, replace(load, workers_bytes=workers_bytes)).peak / GIB
