"""Starts and runs a node: the parts that nodes of all roles share."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from codezero.config import LogFormat, NodeConfig
from codezero.config.load import learning_settings, settings_of
from codezero.identity import names
from codezero.ledger.build import with_contract_bootnodes
from codezero.network.join import Membership, join
from codezero.observe.roles import SOLVER, folder_of, log_name
from codezero.observe.status import STOPPED, StatusFile, new_status
from codezero.observe.trackers.threads import TrackerThreads
from codezero.observe.tracking import trackers
from codezero.publish.tokens import forget_secrets
from codezero.runtime import logs, state, system_info
from codezero.runtime.console import Console
from codezero.runtime.stop import stop_on_signals
from codezero.views.watch import NodeView

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonParts:
    """The parts that every node has; `stack` closes them."""

    role: str
    """`observe.roles.SOLVER`, `PROPOSER` or `VERIFIER`."""
    console: Console
    stack: ExitStack
    folder: Path
    """The locked state folder."""
    log_dir: Path
    status: StatusFile
    membership: Membership

    def trackers(self, config: NodeConfig, last: int | None) -> TrackerThreads:
        """Returns the trackers of the node, whose last saved round or batch is `last`; None starts a new run."""
        name, kind = names.animal_name(self.membership.peer_id), "" if self.role == SOLVER else self.role
        shown = learning_settings(config)
        return self.stack.enter_context(trackers(config.tracking, shown, self.folder, name, last, kind))


class RunningNode(Protocol):
    def run(self) -> None: ...

    def finish(self) -> None: ...


def begin(config: NodeConfig, role: str, console: Console, stack: ExitStack) -> CommonParts:
    """Locks state folder and log folder, starts the log and joins the swarm. Raises CodezeroError: one of them is
    impossible."""
    # The locks come first: a start that is refused must not write into the log of the node that holds one.
    folder = stack.enter_context(state.locked_state(folder_of(Path(config.state_dir).expanduser(), role)))
    log_dir = Path(config.tracking.log_dir).expanduser()
    # Nodes of several roles may share it, as each has files of its own.
    stack.enter_context(state.locked(log_dir, what="log folder", holder=role, setting="tracking.log_dir"))
    as_json = config.tracking.log_format is LogFormat.json
    logs.set_up(log_dir, config.tracking.level, console, log_name(role), as_json=as_json)
    system_info.write(log_dir)
    torch.manual_seed(config.seed)  # codezero does not use this generator; a library that does is repeatable
    state.note_start(folder, settings_of(config))
    status = stack.enter_context(StatusFile(folder, new_status(role, folder, log_dir)))
    swarm = with_contract_bootnodes(config.swarm, config.ledger, console)
    num_generations, needs_name = config.rollout.num_generations, config.ledger.is_shared
    membership = join(swarm, num_generations, folder, console, stack, needs_name=needs_name)
    status.update(peer_id=membership.peer_id)
    return CommonParts(
        role=role, console=console, stack=stack, folder=folder, log_dir=log_dir, status=status, membership=membership
    )


def run(config: NodeConfig, role: str, make: Callable[[CommonParts], RunningNode]) -> int:
    """Runs the node that `make` returns until it is done or a signal stops it, and returns the exit code. Raises
    CodezeroError: it cannot start or continue."""
    forget_secrets(os.environ)
    console = Console()
    view = NodeView(console, config.tracking.view)
    with stop_on_signals(view.leave) as unhurried, ExitStack() as stack:
        parts = begin(config, role, console, stack)
        node = make(parts)
        try:
            with view.showing(role, parts.folder, lambda: parts.status.status):
                node.run()
        except KeyboardInterrupt:
            logger.info("stopped by a signal")
        parts.status.update(ended=STOPPED)  # already here, as a part that is slow to close ends by force
        with unhurried():
            node.finish()
    return 0
