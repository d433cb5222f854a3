"""A node of GenRL 0.3.0, as far as the network sees it: its own backend on its own DHT, driven over a pipe.

Run it where `genrl` can be imported (the fixture `genrl_env`):  genrl_peer.py --timeout S MULTIADDR...
HIVEMIND_WORLD_SIZE is GenRL's: how many peers' rollouts a gather waits for, its own included.

stdout, one JSON object a line: first {"peer_id": ...}, then one for each line of stdin.
stdin, one JSON object a line: {"round": 7, "tasks": [{"question", "test", "dataset", "actions"}, ...]}
answer: {"received": {peer id: [{"question", "test", "dataset", "actions", "metadata"}, ...]}}, or {"error": ...}
or {"key": "proposer", "value": [...]}, which puts a value as its proposers and solvers do, and gets what is there
answer: {"received": {peer id: value}}
The end of stdin ends it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys

import hivemind
import hivemind.dht
import hivemind.utils

hivemind.get_dht_time = hivemind.utils.get_dht_time  # moved by hivemind 1.1.12; the backend imports it from here

from genrl.communication.communication import Payload  # noqa: E402
from genrl.communication.hivemind.hivemind_backend import HivemindBackend  # noqa: E402
from genrl.misc_utils.utils import generate_md5_hash_id  # noqa: E402
from genrl.state.game_tree import WorldState  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--timeout", type=int, default=600, help="seconds a gather waits, and records live")
    parser.add_argument("initial_peers", nargs="+")
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print goes to stderr

    backend = HivemindBackend(initial_peers=options.initial_peers, timeout=options.timeout)
    try:
        print(json.dumps({"peer_id": backend.get_id()}), file=answers, flush=True)
        for line in sys.stdin:
            asked = json.loads(line)
            answer = put_and_get(backend, **asked) if "key" in asked else gather(backend, **asked)
            print(json.dumps(answer), file=answers, flush=True)
    finally:
        backend.dht.shutdown()


def gather(backend: HivemindBackend, round: int, tasks: list[dict]) -> dict:
    rollouts: dict[str, list[Payload]] = {}
    for task in tasks:
        rollouts.setdefault(generate_md5_hash_id(task["question"]), []).append(to_payload(**task))
    backend.step_ = round
    try:
        received = backend.all_gather_object(rollouts)
    except RuntimeError as error:
        return {"error": str(error)}
    return {
        "received": {
            peer_id: [from_payload(payload) for batch in batches.values() for payload in batch]
            for peer_id, batches in received.items()
        }
    }


def put_and_get(backend: HivemindBackend, key: str, value: list) -> dict:
    backend.put(value, sub_key=key.encode())
    return {"received": backend.get(sub_key=key.encode())}


def to_payload(question: str, test: str, dataset: str, actions: list[str]) -> Payload:
    """As GenRL's solver builds it."""
    environment = {"question": question, "test": test, "metadata": {"dataset": dataset}}
    world_state = WorldState(environment_states=environment, opponent_states=None, personal_states=None)
    return Payload(world_state=world_state, actions=actions, metadata=None)


def from_payload(payload: Payload) -> dict:
    environment = payload.world_state.environment_states
    return {
        "question": environment["question"],
        "test": environment["test"],
        "dataset": environment["metadata"]["dataset"],
        "actions": payload.actions,
        "metadata": sorted(payload.metadata or {}),
    }


if __name__ == "__main__":
    main()
