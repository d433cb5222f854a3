"""Checks of the node's key: it can be read, others cannot read it, and no other live node uses it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from codezero.config import Network, checkout
from codezero.doctor.case import ExaminedNode
from codezero.doctor.finding import Finding, error, info, ok, refusal, warning
from codezero.errors import IdentityError
from codezero.identity import key, keyfile
from codezero.identity.key import Identity
from codezero.identity.names import animal_name
from codezero.observe.roles import ROLES, folder_of
from codezero.runtime import state


def needs_key(case: ExaminedNode) -> bool:
    """Returns whether a node with this configuration needs a key, by the rule of `network.join`."""
    return case.config.swarm.network is not Network.none or case.config.ledger.is_shared


def key_path(case: ExaminedNode) -> Path:
    """Returns the absolute path of the node's key. Raises IdentityError as `keyfile.identity_path` does."""
    return keyfile.identity_path(case.config.swarm.identity_path).absolute()


def load(case: ExaminedNode) -> Identity | None:
    """Returns the node's key, or None if it needs none or has none that can be read."""
    try:
        path = key_path(case)
        return key.load(path) if needs_key(case) and os.path.lexists(path) else None
    except IdentityError:
        return None


def check(case: ExaminedNode) -> Iterator[Finding]:
    if not needs_key(case):
        yield info("identity", "none needed: this node trains alone, with a ledger of its own")
        return
    try:
        path = key_path(case)
        if not os.path.lexists(path):
            means = "the first start makes one, and the node is then a new peer"
            command = f"{checkout.COMMAND} identity import BACKUP{keyfile.path_option(path)}"
            do = f"if it was somebody before: restore the key with `{command}`"
            yield info("identity", f"there is no key {path} yet", means, do)
            return
        found = key.load(path)
        yield ok("identity", f"peer {found.peer_id} ({animal_name(found.peer_id)}), from {path}")
        exposed = keyfile.exposure_warning(path)
        if exposed is not None:
            yield warning("identity", exposed, "they can take part as this peer, and earn in its name", "")
        yield from _others(case, path, found.peer_id)
        do = f"{checkout.COMMAND} identity export backup.pem{keyfile.path_option(path)}"
        yield info("backup", f"{path} is the only copy that this machine knows of", do=do)
    except IdentityError as fault:
        yield refusal("identity", fault, "no node can start with this key")


def _others(case: ExaminedNode, path: Path, peer_id: str) -> Iterator[Finding]:
    holder = keyfile.live_holder(path)
    if holder is None:
        return
    if holder in [state.holder(folder_of(case.state_dir, role)) for role in ROLES]:
        yield ok("identity", f"the running node (process {holder}) uses the key")
        return
    found = f"another live node (process {holder or 'unknown'}) uses the key of peer {peer_id}"
    do = "stop that one, or give this one its own key with swarm.identity_path=node2.pem"
    yield error("identity", found, "two nodes with one key are refused: they would race for the same rewards", do)
