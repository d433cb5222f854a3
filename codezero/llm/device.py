"""Chooses the device, precision and number of threads for models, and limits the memory that a process keeps unused."""

from __future__ import annotations

import ctypes
import functools
import gc
import logging
import os
from pathlib import Path

import torch

from codezero.config import Device, Dtype
from codezero.errors import ConfigError
from codezero.runtime import limits
from codezero.runtime.amounts import counted

logger = logging.getLogger(__name__)

_M_MMAP_THRESHOLD = -3
"""The number of this parameter in glibc's malloc.h."""
NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
"""The file by which Linux tells that NVIDIA's driver is loaded."""
MMAP_THRESHOLD_BYTES = 128 * 1024
SHAPES = 128
"""The number of shapes for which compiled matrix products are kept; a decoding step has about ten."""


def choose_device(wanted: Device) -> torch.device:
    """Returns the device to run on; `auto` prefers CUDA, then Apple's MPS, then the CPU.

    Raises ConfigError: the wanted device is not there, or this torch has no kernels for the wanted GPU.
    """
    if wanted is Device.cuda or (wanted is Device.auto and torch.cuda.is_available()):
        return _cuda(required=wanted is Device.cuda)
    if wanted is Device.mps or (wanted is Device.auto and torch.backends.mps.is_available()):
        if not torch.backends.mps.is_available():
            raise ConfigError("model.device=mps but this machine has no Apple GPU: use model.device=auto")
        return torch.device("mps")
    is_hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    if wanted is Device.auto and torch.version.cuda and NVIDIA_DRIVER.exists() and not is_hidden:
        _warn(f"torch {torch.__version__} cannot use this machine's NVIDIA GPU, so the CPU computes: update its driver")
    return torch.device("cpu")


def _cuda(required: bool) -> torch.device:
    if not torch.cuda.is_available():
        raise ConfigError(
            "model.device=cuda but torch sees no CUDA device: update the NVIDIA driver, install a CUDA torch, or use "
            "model.device=auto (with several GPUs and in the GPU image CPU_ONLY=1)"
        )
    major, minor = torch.cuda.get_device_capability()
    kernels = torch.cuda.get_arch_list()
    # Code for one compute capability runs on later minor versions of the same major one: sm_80's on an sm_86 card.
    if any(arch.startswith("sm_") and arch[3:-1] == str(major) and int(arch[-1]) <= minor for arch in kernels):
        # cuDNN's attention makes a plan for each new length of a sequence: 70 of the 73 ms of a step of decoding with a
        # 0.5B model on an H200, and of each micro-batch of another length.
        torch.backends.cuda.enable_cudnn_sdp(False)
        return torch.device("cuda")
    do = "install a torch that has them, or use model.device=cpu"
    message = f"this torch has no kernels for {torch.cuda.get_device_name()} (sm_{major}{minor}; it has {kernels})"
    if required:
        raise ConfigError(f"{message}: {do}")
    _warn(f"{message}, so the CPU computes: {do}")
    return torch.device("cpu")


@functools.cache
def _warn(message: str) -> None:
    """Warns of a GPU that is not used, once in a process."""
    logger.warning("%s", message)


def choose_dtype(wanted: Dtype, device: torch.device, *, frozen: bool = False) -> torch.dtype:
    """Returns the precision of weights and arithmetic; `auto` is bfloat16 on CUDA cards that compute in it (Turing only
    emulates it, slower than float32) and, for `frozen` weights, which nothing trains, on CPUs that do; else float32."""
    if wanted is Dtype.auto:
        if device.type == "cuda":
            in_hardware = torch.cuda.is_bf16_supported(including_emulation=False)
        else:
            in_hardware = frozen and device.type == "cpu" and computes_in_bfloat16()
        return torch.bfloat16 if in_hardware else torch.float32
    return torch.bfloat16 if wanted is Dtype.bfloat16 else torch.float32


def computes_in_bfloat16() -> bool:
    """Returns True if this CPU multiplies bfloat16 matrices in hardware, about twice as fast as in float32."""
    checks = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return any(check() for check in checks if check is not None)


def is_out_of_memory(error: Exception) -> bool:
    """Returns True if the device's memory ran out. Apple's GPUs, and NVIDIA's driver outside torch's allocator, have no
    error class of their own for that, only these texts (MPSAllocator.mm and CUDAException.cpp of torch)."""
    texts = ("MPS backend out of memory", "CUDA error: out of memory")
    return isinstance(error, torch.OutOfMemoryError) or any(text in str(error) for text in texts)


def free_cached_memory() -> None:
    """Gives memory that torch keeps of freed tensors back to the accelerator, also of tensors that only a failed pass's
    own references hold."""
    gc.collect()
    torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()


def set_threads(wanted: int) -> int:
    """Sets and returns the number of CPU threads for arithmetic; 0 takes one per physical core that may be used.

    Also limits what is kept for each shape of a matrix product, so it comes before the first of them: oneDNN, and the
    layer of torch above it, each keep what they compiled for the last 1,024 shapes. That is 0.2 to 0.4 MB a shape, and
    nearly every batch has a new number of tokens: a node grew by 440 MB in its first hour.
    """
    for cache in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(cache, str(SHAPES))
    threads = wanted or limits.usable_cores()
    torch.set_num_threads(threads)
    return threads


def return_freed_memory() -> None:
    """Makes malloc give every block above 128 KiB its own mapping in this process; has no effect without glibc.

    That is glibc's initial value, but it grows to 32 MiB as blocks are freed. Activations are then on the heap, in gaps
    that do not fit those of the next micro-batch: a LoRA step of a 0.5B model on 4 x 406 tokens had a peak of 5.4 GiB
    instead of 3.6, and was not faster. A value that is set once does not grow.
    """
    try:
        done = ctypes.CDLL("libc.so.6").mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES)
    except (OSError, AttributeError):  # macOS, musl
        done = 0
    if not done:
        logger.debug("no glibc here: freed memory may stay with the process")


def describe(device: torch.device, dtype: torch.dtype) -> str:
    """Returns text such as `cpu, float32, 2 threads` or `NVIDIA H200, bfloat16`."""
    precision = str(dtype).removeprefix("torch.")
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name()}, {precision}"
    if device.type == "mps":
        return f"Apple GPU (mps), {precision}"
    threads = torch.get_num_threads()
    return f"cpu, {precision}, {counted(threads, 'thread')}"
