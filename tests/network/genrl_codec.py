"""GenRL 0.3.0's own codec as a filter: run it where `genrl` can be imported (the fixture `genrl_env`).

stdin: {"records": [hex, ...], "tasks": [{"question", "test", "dataset", "actions"}, ...], "values": [any JSON, ...]}
stdout: {"repacked": [each record decoded to GenRL's objects and packed again, in hex],
         "unpacked": [each record as GenRL decodes it, or null where that is more than plain values],
         "seen": [what GenRL sees in it: [batch id, question, test, dataset, actions], ...],
         "packed": the tasks as GenRL's solver packs them, in hex,
         "packed_values": [each value as GenRL packs it, in hex]}
"""

from __future__ import annotations

import hashlib
import json
import sys

import msgpack
from genrl.communication.communication import Payload
from genrl.serialization.msgpack_utils import _msgpack_decode, _msgpack_encode
from genrl.state.game_tree import WorldState

packer = msgpack.Packer(use_bin_type=True, default=_msgpack_encode)


def unpack(record: bytes) -> object:
    unpacker = msgpack.Unpacker(object_hook=_msgpack_decode, raw=False, max_buffer_size=100 * 1024 * 1024)
    unpacker.feed(record)
    return next(unpacker)


def seen(record: dict) -> list[list]:
    found = []
    for batch_id, payloads in record.items():
        for payload in payloads:
            assert isinstance(payload, Payload)
            assert isinstance(payload.world_state, WorldState)
            assert payload.world_state.opponent_states is None
            assert payload.world_state.personal_states is None
            environment = payload.world_state.environment_states
            dataset = environment["metadata"]["dataset"]
            found.append([batch_id, environment["question"], environment["test"], dataset, payload.actions])
    return found


def pack_task(question: str, test: str, dataset: str, actions: list) -> tuple[str, list[Payload]]:
    environment = {"question": question, "test": test, "metadata": {"dataset": dataset}}
    world_state = WorldState(environment_states=environment, opponent_states=None, personal_states=None)
    return hashlib.md5(question.encode()).hexdigest(), [Payload(world_state=world_state, actions=actions)]


asked = json.load(sys.stdin)
records = [unpack(bytes.fromhex(record)) for record in asked["records"]]
json.dump(
    {
        "repacked": [packer.pack(record).hex() for record in records],
        "unpacked": [record if isinstance(record, list) else None for record in records],
        "seen": [seen(record) for record in records if isinstance(record, dict)],
        "packed": packer.pack(dict(pack_task(**task) for task in asked["tasks"])).hex(),
        "packed_values": [packer.pack(value).hex() for value in asked["values"]],
    },
    sys.stdout,
)
