"""One node as a process of its own, that plays rounds until it is ended:  netns_node.py KEY LISTEN [BOOTNODE...]

stdout, one JSON object a line: first {"peer_id", "address"}, then for each round
{"round", "network", "external": [[peer id, network address, question], ...], "dropped": [reason, ...]}.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import time
from pathlib import Path

from codezero.config import Network, SwarmConfig
from codezero.identity import key as identity
from codezero.network import directory
from codezero.network.dht.link import SwarmLink
from codezero.network.gossip import SwarmGossip
from codezero.network.native import NativeBoard
from codezero.types import FinishReason, Rollout, RolloutGroup, RoundId, Task, TaskOrigin

ELAPSED_S = 2.0
"""What a round is said to have taken."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("key", type=Path)
    parser.add_argument("listen")
    parser.add_argument("bootnodes", nargs="*")
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    own, _ = identity.load_or_create(options.key)
    config = SwarmConfig(
        network=Network.native, name="hosts", num_external=8, bootnodes=options.bootnodes, listen=[options.listen]
    )
    link = SwarmLink(config, options.key, options.key.with_suffix(".json"), directory.RULES)
    board = NativeBoard(config.name, own, secrets.token_hex(8), config.window)
    gossip = SwarmGossip(link, board, config, num_generations=1)
    try:
        link.start()
        print(json.dumps({"peer_id": own.peer_id, "address": link.addresses[0]}), file=answers, flush=True)
        first = int(time.time())  # a node that is started again does not repeat itself
        for number in range(first, sys.maxsize):
            time.sleep(0.3)
            found = gossip.exchange(RoundId(number=number), [group(own.peer_id, number)], ELAPSED_S)
            said = {
                "round": number,
                "network": found.network,
                "external": [[one.peer_id, one.address, one.task.question] for one in found.external],
                "dropped": [reason for _, reason in found.rejected],
            }
            print(json.dumps(said), file=answers, flush=True)
    finally:
        link.close()


def group(peer_id: str, number: int) -> RolloutGroup:
    return RolloutGroup(
        peer_id=peer_id,
        model_id="tiny",
        policy_version=0,
        task=Task(origin=TaskOrigin.MBPP, question=f"{peer_id} {number}", tests=""),
        rollouts=(Rollout(text="x", finish=FinishReason.STOP),),
    )


if __name__ == "__main__":
    main()
