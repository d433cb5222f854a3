import platform
import subprocess
import sys

import pytest
import torch

from codezero.config import Device, Dtype
from codezero.errors import ConfigError
from codezero.llm import device as devices
from codezero.llm import onednn

CPU = torch.device("cpu")


def test_cpu_is_taken_when_wanted():
    assert devices.choose_device(Device.cpu) == CPU


def test_a_wanted_gpu_that_is_not_there_is_an_error_with_the_fix(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=r"model\.device=cuda but torch sees no CUDA device"):
        devices.choose_device(Device.cuda)


@pytest.mark.parametrize(
    ("kernels", "runs"), [(["sm_80", "sm_90"], True), (["sm_86"], True), (["sm_90"], False), (["sm_89"], False)]
)
def test_a_gpu_without_kernels_in_this_torch_is_not_chosen(monkeypatch, caplog, kernels, runs):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (8, 6))
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: kernels)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "RTX 3090")
    for _ in range(2):
        assert devices.choose_device(Device.auto).type == ("cuda" if runs else "cpu")
    assert [text.count("so the CPU computes: install a torch") for text in caplog.messages] == [1] * (not runs)
    if not runs:
        with pytest.raises(ConfigError, match=r"no kernels for RTX 3090 \(sm_86"):
            devices.choose_device(Device.cuda)


@pytest.mark.parametrize(("hidden", "warns"), [(None, True), ("", False)])
def test_a_gpu_that_this_torch_cannot_use_is_told(monkeypatch, caplog, tmp_path, hidden, warns):
    devices._warn.cache_clear()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(devices, "NVIDIA_DRIVER", tmp_path)
    if hidden is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert devices.choose_device(Device.auto) == CPU
    told = [
        "cannot use this machine's NVIDIA GPU, so the CPU computes: update its driver" in one for one in caplog.messages
    ]
    assert told == [True] * warns


@pytest.mark.parametrize(("wanted", "dtype"), [(Dtype.auto, torch.float32), (Dtype.bfloat16, torch.bfloat16)])
def test_precision_on_a_cpu(wanted, dtype):
    assert devices.choose_dtype(wanted, CPU) is dtype


@pytest.mark.parametrize(
    ("wanted", "frozen", "dtype"),
    [
        (Dtype.auto, True, torch.bfloat16),
        (Dtype.auto, False, torch.float32),
        (Dtype.float32, True, torch.float32),
    ],
    ids=["fastest", "trained", "as set"],
)
def test_precision_on_a_cpu_that_computes_in_bfloat16(monkeypatch, wanted, frozen, dtype):
    monkeypatch.setattr(devices, "computes_in_bfloat16", lambda: True)
    assert devices.choose_dtype(wanted, CPU, frozen=frozen) is dtype


@pytest.mark.parametrize(("capability", "dtype"), [(7, torch.float32), (8, torch.bfloat16)])
def test_a_gpu_that_only_emulates_bfloat16_computes_in_float32(monkeypatch, capability, dtype):
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or capability >= 8
    )
    assert devices.choose_dtype(Dtype.auto, torch.device("cuda")) is dtype


def test_threads_are_set_and_told():
    before = torch.get_num_threads()
    try:
        assert devices.set_threads(1) == 1
        assert devices.describe(CPU, torch.float32) == "cpu, float32, 1 thread"
    finally:
        torch.set_num_threads(before)


FREED_BYTES = """
import psutil, torch
from codezero.llm.device import return_freed_memory
return_freed_memory()
blocks = [torch.ones(2**18) for _ in range(200)]  # 200 MiB in blocks that glibc would learn to keep
full = psutil.Process().memory_info().rss
del blocks
print(full - psutil.Process().memory_info().rss)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_freed_blocks_leave_the_process():
    # In a process of its own: here earlier tests have left holes in the heap that would take the blocks in.
    done = subprocess.run([sys.executable, "-c", FREED_BYTES], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 150 * 2**20


MANY_SHAPES = """
import psutil, torch
from codezero.llm import device, onednn
device.set_threads(0)
weight, rows = torch.randn(64, 64), torch.randn(500, 64)
def rss_after(first, last):
    for count in range(first, last):
        onednn.linear(rows[:count], weight)
    return psutil.Process().memory_info().rss
before = rss_after(1, 150)
print(rss_after(150, 500) - before)
"""


@pytest.mark.skipif(not onednn.is_available(), reason="linears are torch's here")
def test_matrix_products_of_shapes_that_do_not_return_are_not_kept():
    done = subprocess.run([sys.executable, "-c", MANY_SHAPES], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 50 * 2**20
