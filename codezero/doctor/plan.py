"""The memory plan that a node would make, from files on disk: nothing is downloaded and no weights are read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from codezero.config import Backend, NodeConfig, TrainMethod
from codezero.errors import ModelError, TrainingError
from codezero.evaluate.backends.choose import Machine, choose_backend, has_llama_cpp
from codezero.evaluate.build import LLAMA_CPP_BYTES, JudgeWeights
from codezero.llm import catalogue, store
from codezero.llm import device as devices
from codezero.policy import build
from codezero.runtime import state
from codezero.runtime.console import Console
from codezero.train import memory
from codezero.train.memory import GIB, MemoryEstimate, ModelShape
from codezero.train.method import SMALLEST, Room, choose_method, free_room


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """The memory plan of a node that is not started."""

    estimate: MemoryEstimate | None
    """The planned memory; None for a model that is not downloaded yet, unless it is the smallest one."""
    room: Room
    to_download: tuple[str, ...]
    """The models that are not prepared yet."""
    where: str
    """The device, its precision and threads."""

    def line(self) -> str:
        free = f"{self.room.memory / GIB:.1f} GiB of memory and {self.room.disk / GIB:.0f} GiB of disk can be used"
        return f"{self.estimate.line()}; {free}" if self.estimate is not None else free


def foresee(config: NodeConfig) -> Foreseen:
    """Plans as `policy.build.Models` does. Raises TrainingError: the model does not fit; ConfigError, ModelError or
    StateError: no plan can be made."""
    device = devices.choose_device(config.model.device)
    dtype = devices.choose_dtype(config.model.dtype, device)
    devices.set_threads(config.model.threads)
    folder = Path(config.state_dir).expanduser()
    bound = state.bound_settings(folder)
    room = free_room(config.train, device, folder)
    begun_with = bound.get("evaluator.model") if config.evaluator.model == "auto" else config.evaluator.model
    shape = _shape(config.model.name, config)
    fitting = begun_with or build.judge_beside(config, shape or SMALLEST, device, dtype, room)
    judge = JudgeWeights(config, fitting, device, Console())
    has_judge = config.evaluator.backend in (Backend.auto, Backend.transformers)
    names = dict.fromkeys([config.model.name, *([judge.name] if has_judge else [])])
    absent = tuple(name for name in names if store.prepared(name, config.model.cache_dir) is None)
    where = devices.describe(device, dtype)
    if shape is None:
        return Foreseen(estimate=None, room=room, to_download=absent, where=where)

    def plan_with(backend: Backend) -> MemoryEstimate:
        same = backend is Backend.transformers and judge.name == config.model.name and judge.dtype() == dtype
        load = build.workload(config, device.type, dtype, _judge_bytes(judge, config, backend, device.type), same)
        method = bound.get("train.method")
        is_bound = config.train.method is TrainMethod.auto and method is not None
        train = replace(config.train, method=TrainMethod(method)) if is_bound else config.train
        saved = sum(path.stat().st_size for path in folder.rglob("*.pt"))
        return choose_method(shape, train, load, replace(room, disk=room.disk + saved))

    fits = None
    if config.evaluator.backend is Backend.auto:
        try:
            fits = plan_with(Backend.transformers)
        except TrainingError:
            fits = None
    before = bound.get("evaluator.backend")
    machine = Machine(
        device_type=device.type,
        fits=fits is not None,
        has_llama_cpp=has_llama_cpp(),
        has_gguf=catalogue.find(judge.name) is not None,
        begun_with=Backend(before) if before else None,
    )
    backend, _ = choose_backend(config.evaluator, machine)
    estimate = fits if fits is not None and backend is Backend.transformers else plan_with(backend)
    return Foreseen(estimate=estimate, room=room, to_download=absent, where=where)


def _shape(name: str, config: NodeConfig) -> ModelShape | None:
    folder = store.prepared(name, config.model.cache_dir)
    if folder is not None:
        return memory.read_shape(folder)
    known = catalogue.find(name)
    return SMALLEST if known is not None and known.parameters == SMALLEST.num_parameters else None


def _judge_bytes(judge: JudgeWeights, config: NodeConfig, backend: Backend, device_type: str) -> int:
    """Returns `JudgeWeights.num_bytes`, computed from the catalogue where the weights are not downloaded yet."""
    known = catalogue.find(judge.name)
    if backend is Backend.transformers:
        shape = _shape(judge.name, config)
        parameters = shape.num_parameters if shape is not None else known.parameters if known is not None else None
        if parameters is None:
            raise ModelError(f"{judge.name} is not here yet, so what it needs is not known")
        return parameters * judge.dtype().itemsize
    if backend is Backend.llama_cpp and device_type != "cuda":
        return LLAMA_CPP_BYTES + (known.size_bytes if known is not None else Path(judge.name).stat().st_size)
    return 0
