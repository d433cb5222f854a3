"""The launch script as a new user runs it, on a tiny random model: a swarm of one's own from a checkout."""

import pytest

from tests import tiny_node
from tests.builders import save_tiny
from tests.e2e.checkout import checkout, start

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_a_swarm_of_ones_own_learns_and_ends(tmp_path):
    model = save_tiny(tmp_path / "model")
    folder = checkout(tmp_path / "checkout")
    output = start(
        folder,
        *("--nodes", "2", "--proposers", "0", "--rounds", "4"),
        *tiny_node.settings(model),
        *("rollout.num_generations=4", "rollout.max_new_tokens=60", "swarm.patience=10"),
    )
    for node, other in (("node-1", "node-2"), ("node-2", "node-1")):
        rounds = tiny_node.reports(folder / "swarms" / "home" / node)
        assert [each["round"] for each in rounds] == [1, 2, 3, 4], output
        assert any(each["num_pooled_groups"] for each in rounds), f"{node} has seen nothing of {other}:\n{output}"
