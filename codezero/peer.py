"""A node's place among others, from the configuration: its key, its connection, and how it exchanges rollouts."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from codezero.config import LedgerKind, Network, NodeConfig, SwarmConfig
from codezero.identity import keyfile
from codezero.identity.key import Identity, load_or_create
from codezero.identity.names import animal_name
from codezero.network.solo import SoloGossip, SoloProposals, SoloSolvers
from codezero.observe.console import Console
from codezero.ports import Gossip, Proposals, Solvers
from codezero.types import SOLO_PEER_ID, Task

if TYPE_CHECKING:
    from codezero.dht.server import RecordRules
    from codezero.network.board import Board, ProposalBoard


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Who the node is, and how it talks to others."""

    peer_id: str
    gossip: Callable[[Callable[[Task], bool]], Gossip]
    """Makes the exchange of rollouts, given what says whether a peer's task is short enough to be trained on."""
    proposals: Callable[[], Proposals]
    """Makes a solver's connection to proposers."""
    solvers: Callable[[], Solvers]
    """Makes a proposer's connection to solvers."""


def join(config: NodeConfig, folder: Path, console: Console, stack: ExitStack) -> Place:
    """Takes the node's key and begins to connect; `stack` ends the connection.

    Raises IdentityError or NetworkError: the key cannot be used, or the p2p daemon does not start.
    """
    swarm = config.swarm
    if swarm.network is Network.none:
        # a ledger that others use too tells peers apart, so whoever is on one needs a name of its own
        own = config.ledger.kind is not LedgerKind.local or config.ledger.path != ""
        peer_id = take_identity(swarm, console, stack)[0].peer_id if own else SOLO_PEER_ID
        return Place(peer_id=peer_id, gossip=lambda fits: SoloGossip(), proposals=SoloProposals, solvers=SoloSolvers)
    # Only here, since these import hivemind, which takes a second that a node without a network need not wait.
    from codezero.dht.cache import PeerCache
    from codezero.dht.link import SwarmLink
    from codezero.network.genrl import GenrlBoard, GenrlProposalBoard
    from codezero.network.gossip import SwarmGossip
    from codezero.network.native import NativeBoard, NativeProposalBoard
    from codezero.network.proposals import SwarmProposals
    from codezero.network.solvers import SwarmSolvers

    identity, key_file = take_identity(swarm, console, stack)
    instance = secrets.token_hex(8)
    link = SwarmLink(swarm, key_file, PeerCache(folder / "peers.json"), rules_of(swarm.network))
    stack.callback(link.close)
    link.start()
    native = swarm.network is Network.native
    board: Board = (NativeBoard if native else GenrlBoard)(swarm.name, identity, instance, swarm.window)
    proposal_board: ProposalBoard = (
        NativeProposalBoard(swarm.name, identity, instance) if native else GenrlProposalBoard(identity)
    )
    at = f", reached at {', '.join(link.addresses[:3])}" if link.addresses else ""
    console.line(f"swarm: {swarm.name} ({swarm.network.value}), as {link.reach.value}{at}")
    return Place(
        peer_id=identity.peer_id,
        gossip=lambda fits: SwarmGossip(link, board, swarm, config.rollout.num_generations, fits),
        proposals=lambda: SwarmProposals(link, proposal_board, swarm),
        solvers=lambda: SwarmSolvers(link, proposal_board, swarm, identity.peer_id),
    )


def rules_of(network: Network) -> RecordRules:
    """What a server of the network keeps."""
    from codezero.network import directory, genrl

    return directory.RULES if network is Network.native else genrl.RULES


def take_identity(swarm: SwarmConfig, console: Console, stack: ExitStack) -> tuple[Identity, Path]:
    """The node's key, made if there is none, and held against a second live node while `stack` is open."""
    path = keyfile.identity_path(swarm.identity_path)
    identity, is_new = load_or_create(path)
    stack.enter_context(keyfile.live_identity(identity))
    console.line(f"peer: {identity.peer_id}, {animal_name(identity.peer_id)}")
    if is_new:
        console.line(keyfile.backup_reminder(identity, path))
    exposed = keyfile.exposure_warning(path)
    if exposed is not None:
        console.line(exposed)
    return identity, path
