"""A liar among live nodes: its tasks have tests that reward wrong answers."""

from __future__ import annotations

from codezero.config import LedgerKind, Network, swarm_file
from codezero.config.load import load_config
from codezero.config.swarm_file import SwarmFile
from codezero.tasks.build import make_task_source
from codezero.tasks.known import WantedTasks
from codezero.tasks.mbpp import to_task
from codezero.tasks.problems import load_problems
from codezero.tasks.proposed import WithProposals
from codezero.types import RoundId
from tests.network.nodes import NUM_GENERATIONS
from tests.unit.network.dht.memory_p2p import publish
from tests.unit.network.wire_builders import group
from tests.unit.tasks.builders import mbpp_rows, write_jsonl


def test_a_node_that_joins_with_default_settings_trains_on_known_tasks_and_on_no_liars(swarm, tmp_path):
    mallory = swarm.node("mallory")
    invite = SwarmFile(
        name="swarm-a",
        network=Network.native,
        bootnodes=(mallory.address,),
        ledger=LedgerKind.local,
        num_generations=NUM_GENERATIONS,
    )
    swarm_file.write(tmp_path / "invite.yaml", invite)
    rows = write_jsonl(tmp_path / "mbpp.jsonl", mbpp_rows(2))
    config = load_config([f"swarm={tmp_path / 'invite.yaml'}", "tasks=mbpp", f"tasks.mbpp.path={rows}"])
    own = make_task_source(config.tasks, seed=0)
    wanted = WantedTasks(config.swarm.tasks, own.withheld, WithProposals(own, 0.5, tuple, lambda proposal: None))
    guest = swarm.node("guest", mallory, unwanted=wanted.why_not)
    guest.wait_for(mallory)
    mallory.wait_for(guest)
    good, builtin = to_task(mbpp_rows(1)[0]), load_problems(1, 1)[0].task
    groups = [
        group(mallory.peer_id, good.question, tests="assert double(2) == 5", texts=("a lie", "the truth")),
        group(mallory.peer_id, "Write backdoor(x).", tests="assert backdoor(1) == 'open'", texts=("a lie", "none")),
        group(mallory.peer_id, good.question, tests=good.tests),
        group(mallory.peer_id, builtin.question, tests=builtin.tests, origin=builtin.origin),
    ]
    assert mallory.link.run(publish(mallory.board, mallory.dht, RoundId(number=0), groups, 600.0))
    found = guest.exchange(1)
    assert len(found.external) == 2
    assert {(one.task.question, one.task.tests) for one in found.external} == {
        (good.question, good.tests),
        (builtin.question, builtin.tests),
    }
    assert found.rejected == ((mallory.peer_id, "unknown_task"),) * 2
