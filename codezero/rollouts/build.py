"""Builds a rollout server by the configuration, and a node's connection to several."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from codezero.config import NodeConfig, RolloutEngine
from codezero.errors import ConfigError
from codezero.llm import device as devices
from codezero.llm import engines, store
from codezero.llm.load import load_model
from codezero.rollouts import rollout_file
from codezero.rollouts.client import RolloutServer
from codezero.rollouts.engine import RemoteEngine
from codezero.rollouts.snapshots import Snapshots
from codezero.runtime.console import Console
from codezero.train.method import free_room

if TYPE_CHECKING:
    from codezero.rollouts.serve import ServeOptions


def run_server(config: NodeConfig, options: ServeOptions) -> int:
    """Serves rollouts of the configured model until it is stopped. Raises CodezeroError: it cannot."""
    from codezero.rollouts.serve import serve  # not at the top: fastapi, which no node needs, is a tenth of its start

    if config.rollout.engine is RolloutEngine.remote:
        raise ConfigError("rollout.engine=remote is for nodes: a rollout server samples by itself, so leave it out")
    console = Console()
    device = devices.choose_device(config.model.device)
    engine = config.rollout.engine
    engines.require(engine, device)
    devices.set_threads(config.model.threads)
    folder = store.prepare(config.model.name, config.model.cache_dir, report=console.line)
    dtype = devices.choose_dtype(config.model.dtype, device)
    policy = load_model(config.model.name, folder, device, dtype)
    console.line(f"model: {config.model.name} on {devices.describe(device, dtype)}")
    own = Path(config.state_dir).expanduser() / "rollouts" / options.file.stem  # of several servers each has its file
    cache_bytes = free_room(config.train, device, own).memory // 2
    sample = engines.make_engine(engine, folder, own, cache_bytes)
    serve(policy, sample, engine, options, console)
    return 0


def make_remote(config: NodeConfig, model: Any, folder: Path) -> RemoteEngine:
    """Returns the engine that samples with the configured servers, and here where none of them answers.

    Raises ConfigError: a rollout file cannot be read, or two are of one server; RolloutError: the folder cannot be
    written."""
    urls: set[str] = set()
    servers = [RolloutServer(rollout_file.read_another(name, urls), Path(name).name) for name in config.rollout.servers]
    return RemoteEngine(servers, Snapshots(model, folder / "rollouts", config.rollout.transfer))
