"""Builds the publisher of the model, if the configuration enables it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from codezero.config import NodeConfig, PushedCheckpoint, TrainMethod
from codezero.errors import StateError, told_as
from codezero.llm.load import LoadedModel
from codezero.publish.card import facts
from codezero.publish.hub import Hub
from codezero.publish.pack import Packer
from codezero.publish.publisher import Publisher
from codezero.publish.tokens import HubTokens
from codezero.reports import RoundReport
from codezero.runtime.console import Console
from codezero.train.checkpoint import BEST, report_of


def start_publisher(
    config: NodeConfig,
    tokens: HubTokens,
    policy: LoadedModel,
    method: TrainMethod,
    peer_id: str,
    folder: Path,
    console: Console,
    tell: Callable[[str, str], None],
    stack: ExitStack,
) -> Publisher | None:
    """Starts a publisher that works in the node's state `folder` until `stack` is closed, and tells the last push and
    its trouble, as `Publisher` does; None if pushing is off.

    Raises StateError: the folder cannot be written.
    """
    push = config.push
    if not push.enabled:
        return None
    about = facts(config.model.name, method, peer_id)
    with told_as(StateError, f"cannot write to {folder / 'push'}", "give another state_dir"):
        packer = Packer(policy, about, folder / "push")
    hub = Hub(tokens.push, push.endpoint, private=push.private)
    publisher = Publisher(push, hub, packer, folder / "pushed.json", tell)
    often = [f"{push.every_hours:g} hours"] * (push.every_hours > 0)
    often += [f"{push.every_rounds} rounds"] * (push.every_rounds > 0)
    last = f"; last {publisher.last}" if publisher.last else ""
    what = "adapter" if method is TrainMethod.lora else "model"
    console.line(f"push: the {what} to {push.repo or about.repository} every {' or '.join(often)}{last}")
    best = folder / "checkpoints" / BEST
    if push.checkpoint is PushedCheckpoint.best and (kept := report_of(best)) is not None:
        report = RoundReport(**kept)  # what a stop kept from being pushed
        publisher.note(report)
        publisher.offer(report.round, best, best)
    publisher.start()
    stack.callback(publisher.stop)
    return publisher
