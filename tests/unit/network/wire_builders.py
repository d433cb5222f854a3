"""Small groups and records of the wire for tests."""

from __future__ import annotations

import hashlib
import time
from functools import cache

import msgspec
import zstandard
from hypothesis import strategies as st

from codezero.identity.key import Identity
from codezero.network.wire import ROLLOUTS, Announcement, pack_genrl, pack_groups, read_genrl, unpack_groups
from codezero.types import FinishReason, Rollout, RolloutGroup, Task, TaskOrigin

SWARM = "swarm-a"
INSTANCE = "00112233aabbccdd"


def identity(name: str = "alice") -> Identity:
    """One key a name; making one takes a tenth of a second."""
    return _made(name)


@cache
def _made(name: str) -> Identity:
    return Identity.generate()


def group(peer_id: str = "", question: str = "Write f(x).", texts=("a", "b"), **kwargs) -> RolloutGroup:
    fields = {"origin": TaskOrigin.MBPP, "tests": "assert f(1) == 2", "difficulty": None, **kwargs}
    return RolloutGroup(
        peer_id=peer_id or identity().peer_id,
        model_id="tiny",
        policy_version=3,
        task=Task(question=question, **fields),
        rollouts=tuple(Rollout(text=text, finish=FinishReason.STOP) for text in texts),
        signed=True,
    )


def announce(content: bytes = b"body", **changes) -> Announcement:
    fields = {
        "swarm": SWARM,
        "topic": ROLLOUTS,
        "peer_id": identity().peer_id,
        "round": 7,
        "published_at_s": 1.5e9,
        "expires_at_s": 1.5e9 + 600,
        "instance": INSTANCE,
        "digest": hashlib.sha256(content).digest(),
        "size": len(content),
    }
    return Announcement(**{**fields, **changes})


def genrl(groups, signer: Identity | None = None, **changes) -> bytes:
    fields = {"swarm": SWARM, "round_number": 7, "published_at_s": 1.5e9, "expires_at_s": 4e9, "instance": INSTANCE}
    return pack_genrl(groups, identity=signer or identity(), **{**fields, **changes})


def heard(task: Task) -> list[Task]:
    """The task of a group as it arrives in the native format and in GenRL's."""
    sent = group(question=task.question, origin=task.origin, tests=task.tests, difficulty=task.difficulty)
    body = pack_groups([sent])
    (native,), _ = unpack_groups(body, announce(body))
    now = time.time()
    record = genrl([sent], published_at_s=now, expires_at_s=now + 600)
    (of_genrl,) = read_genrl(record, identity().peer_id, swarm=SWARM, round_number=7).groups
    return [native.task, of_genrl.task]


def bin_(content: bytes) -> bytes:
    """The content as the DHT stores the value of a record."""
    return msgspec.msgpack.encode(content)


def body_of(items: object) -> bytes:
    return zstandard.compress(msgspec.msgpack.encode(items))


def extended(body: bytes, extensions: object = None, **fields) -> bytes:
    """A body with these extensions on each of its items, and with fields that replace theirs."""
    extensions = {"logprobs": [b"\0\x3c", None], "of tomorrow": {"x": [1.5]}} if extensions is None else extensions
    items = msgspec.msgpack.decode(zstandard.decompress(body))
    return body_of([{**item, **fields, "extensions": extensions} for item in items])


NO_ENVIRONMENT = st.just("")


def groups(environments=NO_ENVIRONMENT):
    """Strategy for lists of groups of alice, on tasks of environments with these names."""
    rollouts = st.builds(Rollout, text=st.text(max_size=30), finish=st.sampled_from(FinishReason))
    tasks = st.builds(
        lambda origin, environment, **rest: Task(
            origin=TaskOrigin.ENVIRONMENT if environment else origin, environment=environment, **rest
        ),
        origin=st.sampled_from(sorted({*TaskOrigin} - {TaskOrigin.ENVIRONMENT})),
        environment=environments,
        question=st.text(max_size=30),
        tests=st.text(max_size=30),
        difficulty=st.none() | st.integers(1, 5),
    )
    return st.lists(
        st.builds(
            RolloutGroup,
            peer_id=st.just(identity().peer_id),
            model_id=st.text(max_size=20),
            policy_version=st.integers(0, 2**53),
            task=tasks,
            rollouts=st.lists(rollouts, min_size=1, max_size=4).map(tuple),
            signed=st.just(True),
        ),
        max_size=4,
    )
