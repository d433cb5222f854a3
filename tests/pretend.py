"""A pretended accelerator: tensors say that they are on a device of their own, their numbers lie on the CPU.

Mixing devices raises, as CUDA would. Kernels that would be started are counted, and so is each time that the host would
wait for the device (a sync): `.item()`, `.tolist()`, copies to the host, indices by a mask. It says nothing about real
kernels, their speed or memory.

    python -m tests.pretend < RUNS     plays nodes on it, one after the other; its last line has their counts as JSON

RUNS is a JSON list of [the kernel at which the first round's sampling runs out of memory or -1, settings].

Importing this registers the device in the process for good, so tests start one.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import json
import sys
import threading
import traceback
from contextlib import contextmanager

import torch
from torch.utils._device import _device_constructors
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend
from transformers import PreTrainedModel

NAME = "pretended"
STATE_BYTES = 16
"""The length of a random generator's state, that of CUDA's."""
VIEWS = {
    *("view", "_unsafe_view", "t", "transpose", "permute", "expand", "slice", "select", "unsqueeze", "squeeze"),
    *("detach", "alias", "as_strided", "split", "split_with_sizes", "unbind", "chunk", "diagonal", "_reshape_alias"),
    *("lift_fresh", "unfold", "narrow", "view_as", "reshape", "_fused_sdp_choice"),
}
"""Operations that start no kernel."""
WAITING = {"_local_scalar_dense", "nonzero", "equal", "masked_select"}
"""Operations whose result or its shape the host needs."""
COPIES = {"copy_", "_to_copy", "_copy_from", "set_"}
"""Operations that may have tensors of two devices."""
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
"""Operations that take indices from the host."""


class _Backend(_DummyBackendModule):
    def get_amp_supported_dtype(self):
        return [torch.bfloat16]

    def get_rng_state(self, device=0):
        return torch.zeros(STATE_BYTES, dtype=torch.uint8)

    def set_rng_state(self, state, device=0):
        """Does nothing: the device has no generator of its own."""


_setup_privateuseone_for_python_backend(NAME, _Backend())
DEVICE = torch.device(f"{NAME}:0")


@dataclasses.dataclass
class Counts:
    kernels: int = 0
    syncs: int = 0
    tokens: int = 0
    steps: int = 0
    """Steps of decoding or of the optimizer."""
    where: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    """Syncs by the line of codezero that they are due to."""


TOTAL = Counts()
FAIL_AT = [-1]
"""The number of kernels until one runs out of memory; negative for never."""


def _sync(name: str) -> None:
    if threading.current_thread() is not threading.main_thread():
        return  # the one that saves: nobody waits for it
    TOTAL.syncs += 1
    frames = [f for f in traceback.extract_stack() if "/codezero/" in f.filename and "site-packages" not in f.filename]
    line = f"{frames[-1].filename.rpartition('/codezero/')[2]}:{frames[-1].lineno}" if frames else "?"
    TOTAL.where[f"{line} {name}"] += 1


class Pretended(torch.Tensor):
    """A tensor that says it is on the device."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(
            *(cls, held.size()),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            layout=held.layout,
            device=DEVICE,
        )

    def __init__(self, held):
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})

    def __reduce_ex__(self, protocol):
        _sync("saved")
        return self.held.detach().__reduce_ex__(protocol)

    def __deepcopy__(self, memo):
        return Pretended(self.held.clone())

    def __getitem__(self, index):
        def moved(one):
            return Pretended(_tensor(one)) if isinstance(one, list) else one

        return super().__getitem__(tuple(map(moved, index)) if isinstance(index, tuple) else moved(index))

    def tolist(self):
        _sync("tolist")
        return self.held.tolist()

    def numpy(self, *_):
        raise TypeError("can't convert a tensor of the device to numpy: use .cpu() first")


class Mode(TorchDispatchMode):
    """Makes tensors of the device for calls such as torch.zeros(3, device=...)."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


def _is_ours(device) -> bool:
    return device is not None and torch.device(device).type == NAME


def _check(func, name, args, ours, others) -> None:
    """Raises RuntimeError: tensors of two devices meet."""
    if not ours or not others or name in COPIES:
        return
    wrong = [x for x in others if x.dim() > 0]  # a number from the host is a kernel's argument
    if name in INDEXING and isinstance(args[0], Pretended):
        wrong = [x for x in wrong if not any(x is index for index in args[1] if index is not None)]
    if wrong or (not isinstance(args[0], Pretended) and name.endswith("_")):
        raise RuntimeError(f"Expected all tensors to be on the same device: {func}, {[tuple(x.shape) for x in wrong]}")


def _count(name, args, is_result_ours) -> None:
    if name in VIEWS or name.startswith("sym_"):
        return
    if FAIL_AT[0] >= 0:
        FAIL_AT[0] -= 1
        if FAIL_AT[0] < 0:
            raise torch.OutOfMemoryError("pretended: out of memory")
    TOTAL.kernels += 1
    by_mask = name == "index" and any(i is not None and i.dtype == torch.bool for i in args[1])
    if name in WAITING or by_mask or (name in COPIES and not is_result_ours):
        _sync(name)


def _run(func, args, kwargs):
    name = func.overloadpacket.__name__
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
    ours = [x for x in tensors if isinstance(x, Pretended)]
    _check(func, name, args, ours, [x for x in tensors if not isinstance(x, Pretended)])
    device = kwargs.get("device")
    is_result_ours = _is_ours(device) if device is not None else bool(ours)
    if name == "copy_":
        is_result_ours = isinstance(args[0], Pretended)
    if ours or is_result_ours:
        _count(name, args, is_result_ours)
    if name == "_fused_sdp_choice":
        return 0
    held_args, held_kwargs = tree_map(lambda x: x.held if isinstance(x, Pretended) else x, (args, kwargs))
    if _is_ours(device):
        held_kwargs["device"] = torch.device("cpu")
    held_kwargs.pop("pin_memory", None)
    result = func(*held_args, **held_kwargs)
    if name == "_local_scalar_dense" or not is_result_ours:
        return result
    if name == "_to_copy" and not ours and any(result is x for x in tensors):
        result = result.clone()
    wrapped = tree_map(lambda x: Pretended(x) if isinstance(x, torch.Tensor) else x, result)
    return return_and_correct_aliasing(func, args, kwargs, wrapped) if ours else wrapped


_tensor, _as_tensor, _Generator = torch.tensor, torch.as_tensor, torch.Generator


def _made_tensor(data, *, device=None, **kwargs):
    made = _tensor(data, **kwargs)
    return made if device is None else made.to(device)


def _made_as_tensor(data, dtype=None, device=None):
    made = data if isinstance(data, torch.Tensor) else _as_tensor(data)
    return made if dtype is None and device is None else made.to(device=device, dtype=dtype)


class _DeviceGenerator(_Generator):
    """A generator of the device. Its state is as long as CUDA's, a digest from which it goes on."""

    def get_state(self):
        digest = hashlib.sha256(super().get_state().numpy().tobytes()).digest()
        return _tensor(list(digest[:STATE_BYTES]), dtype=torch.uint8)

    def set_state(self, state):
        if len(state) != STATE_BYTES:
            raise RuntimeError("RNG state is wrong size")
        self.manual_seed(int.from_bytes(bytes(state.tolist()), "little") % 2**63)


class _AnyGenerator:
    """Stands for torch.Generator, which is named in annotations too."""

    def __new__(cls, device="cpu"):
        return _DeviceGenerator() if _is_ours(device) else _Generator()


def _drawing(draw):
    def drawn(*args, generator=None, device=None, **kwargs):
        if generator is None:
            return draw(*args, device=device, **kwargs)
        if isinstance(generator, _DeviceGenerator) != _is_ours(device):
            raise RuntimeError("Expected a generator of the tensor's device")
        made = draw(*args, generator=generator, **kwargs)
        return made if device is None else made.to(device)

    return drawn


def install() -> None:
    """Makes this process choose the pretended device, in bfloat16."""
    from codezero.config import Dtype
    from codezero.llm import device as devices

    _device_constructors()  # cached: `with torch.device("meta")` must know the functions that are replaced below
    torch.tensor, torch.as_tensor, torch.Generator = _made_tensor, _made_as_tensor, _AnyGenerator
    torch.UntypedStorage.data_ptr = lambda storage: storage._cdata  # ours have no data, but views share a storage
    torch.rand, torch.randint, torch.randn = map(_drawing, (torch.rand, torch.randint, torch.randn))
    devices.choose_device = lambda wanted: DEVICE
    devices.choose_dtype = lambda wanted, device, frozen=False: (
        torch.float32 if wanted is Dtype.float32 else torch.bfloat16
    )
    devices.describe = lambda device, dtype: f"pretended accelerator, {dtype}"
    move = PreTrainedModel.to
    PreTrainedModel.to = lambda model, *args: _tied(move(model, *args))
    Mode().__enter__()


def _tied(model):
    """A real device keeps tied weights one tensor, since it can move a parameter in place."""
    model.tie_weights()
    return model


@contextmanager
def counted(counts: Counts):
    """Adds what the body starts and waits for."""
    kernels, syncs, where = TOTAL.kernels, TOTAL.syncs, TOTAL.where.copy()
    yield
    counts.kernels += TOTAL.kernels - kernels
    counts.syncs += TOTAL.syncs - syncs
    counts.where += TOTAL.where - where


def play(out_of_memory_at: int, settings: list[str]) -> dict[str, object]:
    """Plays a node in this process. Returns the counts of sampling and of the optimizer."""
    from codezero.config.load import load_config
    from codezero.node import run_node
    from codezero.policy.solver import PolicySolver
    from codezero.train.optimizer import MasterAdamW

    sampling, optimizing = Counts(), Counts()
    solve, apply = PolicySolver.solve, MasterAdamW.apply

    def counted_solve(self, tasks, version):
        FAIL_AT[0], waiting[0] = waiting[0], -1
        with counted(sampling):
            groups = solve(self, tasks, version)
        sampling.tokens += sum(len(r.tokens.completion_ids) for g in groups for r in g.rollouts)
        sampling.steps += max(len(r.tokens.completion_ids) for g in groups for r in g.rollouts)
        return groups

    def counted_apply(self, norm):
        optimizing.steps += 1
        with counted(optimizing):
            return apply(self, norm)

    waiting = [out_of_memory_at]
    PolicySolver.solve, MasterAdamW.apply = counted_solve, counted_apply
    try:
        code = run_node(load_config(settings))
    finally:
        PolicySolver.solve, MasterAdamW.apply = solve, apply
    return {"code": code, "sampling": vars(sampling), "optimizing": vars(optimizing)}


if __name__ == "__main__":
    install()
    print(json.dumps([play(at, settings) for at, settings in json.load(sys.stdin)]))
