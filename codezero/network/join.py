"""Joins the swarm that the configuration names: the node's key, its connection, and its exchanges with other nodes."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from codezero.config import Network, SwarmConfig
from codezero.identity import keyfile
from codezero.identity.key import Identity, load_or_create
from codezero.identity.names import animal_name
from codezero.network.solo import Solo
from codezero.ports import Gossip, Proposals, Solvers
from codezero.runtime.console import Console
from codezero.types import SOLO_PEER_ID, Task

if TYPE_CHECKING:
    from codezero.network.board import Board, ProposalBoard
    from codezero.network.dht.server import RecordRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A node's identity and its connections to other nodes."""

    peer_id: str
    gossip: Callable[[Callable[[Task], bool], Callable[[Task], str | None]], Gossip]
    """Makes the exchange of rollouts, given two functions of a peer's task: whether it is short enough to be trained
    on, and why it is not wanted, None if it is."""
    proposals: Callable[[], Proposals]
    """Makes a solver's connection to proposers."""
    solvers: Callable[[], Solvers]
    """Makes a proposer's connection to solvers."""


def join(
    swarm: SwarmConfig,
    num_generations: int,
    folder: Path,
    console: Console,
    stack: ExitStack,
    *,
    needs_name: bool,
) -> Membership:
    """Locks the node's key and begins to connect; `stack` ends the connection. Without a network a node uses its key
    only with `needs_name`, for a ledger that others use too.

    Raises IdentityError, NetworkError: the key cannot be used, or the p2p daemon does not start.
    """
    if swarm.network is Network.none:
        peer_id = take_identity(swarm, console, stack)[0].peer_id if needs_name else SOLO_PEER_ID
        return Membership(peer_id=peer_id, gossip=lambda fits, unwanted: Solo(), proposals=Solo, solvers=Solo)
    # Imported here, since hivemind takes a second to import, which a node without a network need not wait for.
    from codezero.network.dht.link import SwarmLink
    from codezero.network.genrl import GenrlBoard, GenrlProposalBoard
    from codezero.network.gossip import SwarmGossip
    from codezero.network.native import NativeBoard, NativeProposalBoard
    from codezero.network.proposals import SwarmProposals
    from codezero.network.solvers import SwarmSolvers

    identity, key_file = take_identity(swarm, console, stack)
    instance = secrets.token_hex(8)
    link = SwarmLink(swarm, key_file, folder / "peers.json", rules_of(swarm.network))
    stack.callback(link.close)
    link.start()
    native = swarm.network is Network.native
    board: Board = (NativeBoard if native else GenrlBoard)(swarm.name, identity, instance, swarm.window)
    proposal_board: ProposalBoard = (
        NativeProposalBoard(swarm.name, identity, instance) if native else GenrlProposalBoard(identity)
    )
    at = f", reached at {', '.join(link.addresses[:3])}" if link.addresses else ""
    console.line(f"swarm: {swarm.name} ({swarm.network.value}), as {link.reach.value}{at}")
    return Membership(
        peer_id=identity.peer_id,
        gossip=lambda fits, unwanted: SwarmGossip(link, board, swarm, num_generations, fits, unwanted),
        proposals=lambda: SwarmProposals(link, proposal_board, swarm),
        solvers=lambda: SwarmSolvers(link, proposal_board, swarm, identity.peer_id),
    )


def rules_of(network: Network) -> RecordRules:
    """Returns the rules by which a server of the network keeps records."""
    from codezero.network import directory, genrl

    return directory.RULES if network is Network.native else genrl.RULES


def take_identity(swarm: SwarmConfig, console: Console, stack: ExitStack) -> tuple[Identity, Path]:
    """Returns the node's key, made if there is none, and its path; `stack` ends its lock. Raises IdentityError."""
    path = keyfile.identity_path(swarm.identity_path)
    identity, is_new = load_or_create(path)
    stack.enter_context(keyfile.live_identity(identity, path))
    console.line(f"peer: {identity.peer_id}, {animal_name(identity.peer_id)}")
    if is_new:
        console.line(keyfile.backup_reminder(identity, path))
    exposed = keyfile.exposure_warning(path)
    if exposed is not None:
        console.line(exposed)
    return identity, path
