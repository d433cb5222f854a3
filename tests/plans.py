"""Memory plans of nodes, for machines that are only imagined."""

from dataclasses import replace

import torch

from codezero.config import TrainMethod
from codezero.config.load import load_config
from codezero.policy import build
from codezero.train.memory import GIB, QWEN_0_5B, estimate, read_shape
from codezero.workers.pool import WORKER_BYTES


def planned_gib(method: TrainMethod, device_type: str, settings: list[str], workers: int) -> float:
    """GiB that a node with these settings plans with, judged by the weights that it starts from."""
    config = load_config(settings)
    dtype = torch.bfloat16 if device_type == "cuda" else torch.float32
    judge_bytes = QWEN_0_5B.num_parameters * dtype.itemsize
    load = build.workload(config, device_type, dtype, judge_bytes, evaluator_is_base=True)
    workers_bytes = 0 if device_type == "cuda" else workers * WORKER_BYTES  # they are not on the GPU
    return estimate(QWEN_0_5B, method, config.train, replace(load, workers_bytes=workers_bytes)).peak / GIB


def gpu_gib(folder: str, method: TrainMethod, masters: bool = True) -> tuple[float, float]:
    """GiB of an NVIDIA GPU that a node alone plans with for the model in this folder, beside a judge of 0.5B: with the
    micro-batches that it prefers, and with the least memory that it can do with."""
    config = load_config(["preset=local"])
    judge_bytes = QWEN_0_5B.num_parameters * torch.bfloat16.itemsize
    load = build.workload(config, "cuda", torch.bfloat16, judge_bytes, evaluator_is_base=False)
    train = replace(config.train, masters=masters)
    least = replace(train, micro_batch_size=1, gradient_checkpointing=True)
    most_gib, least_gib = (estimate(read_shape(folder), method, one, load).peak / GIB for one in (train, least))
    return most_gib, least_gib
