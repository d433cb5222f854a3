from __future__ import annotations

import random
from itertools import pairwise

import pytest

from codezero.network import directory, wire
from codezero.network.directory import depth, shard_of, shards_to_read


@pytest.mark.parametrize(
    ("num_nodes", "bits"), [(0, 0), (1, 0), (24, 0), (48, 1), (96, 2), (24 << 10, 10), (1 << 60, 20)]
)
def test_twenty_four_peers_share_a_shard(num_nodes, bits):
    assert depth(num_nodes) == bits


def test_a_deeper_shard_lies_within_the_shallower_one():
    shards = [shard_of("swarm", "QmA", bits) for bits in range(21)]
    assert [len(shard) for shard in shards] == list(range(21))
    assert all(deep.startswith(shallow) for shallow, deep in pairwise(shards))


def test_peers_spread_evenly_over_shards():
    counts = [0] * 8
    for number in range(4000):
        counts[int(shard_of("swarm", f"Qm{number}", 3), 2)] += 1
    assert all(400 < count < 600 for count in counts)


@pytest.mark.parametrize("num_nodes", [1, 2, 10, 24])
def test_a_small_swarm_is_read_as_a_whole(num_nodes):
    assert shards_to_read(num_nodes, random.Random(1))[0] == ""


@pytest.mark.parametrize(
    ("num_nodes", "depths"),
    [(25, [0]), (30, [0, 1, 1]), (48, [1, 1]), (60, [1, 2, 2]), (96, [2, 2]), (150_000, [12, 13, 13])],
)
def test_a_reader_reads_two_or_three_shards_however_many_there_are(num_nodes, depths):
    assert [len(shard) for shard in shards_to_read(num_nodes, random.Random(1))] == depths


@pytest.mark.parametrize("num_nodes", [30, 60, 96, 300, 5000])
def test_what_is_read_is_one_region_and_each_peer_of_it_is_in_one_of_its_shards(num_nodes):
    found = shards_to_read(num_nodes, random.Random(1))
    region = min(found, key=len) if len(found) == 3 else found[0][:-1]
    deepest = max(map(len, found))
    assert sorted(shard for shard in found if len(shard) == deepest) == [region + "0", region + "1"]
    assert set(found) <= {region, region + "0", region + "1"}


def test_readers_look_everywhere_in_turn():
    dice = random.Random(1)
    read = {shard for _ in range(200) for shard in shards_to_read(192, dice)}
    assert read == {format(number, "03b") for number in range(8)}


@pytest.mark.parametrize("num_nodes", [27, 30, 48, 70, 300, 5000])
def test_a_reader_and_a_publisher_whose_estimates_differ_by_a_quarter_meet(num_nodes):
    for publisher in (0.9, 1.0, 1.12):
        bits = round(depth(num_nodes * publisher))
        for reader in (0.9, 1.0, 1.12):
            assert bits in {len(shard) for shard in shards_to_read(num_nodes * reader, random.Random(1))}


def test_keys_of_swarms_and_shards_differ():
    keys = {
        directory.directory_key(swarm, wire.ROLLOUTS, shard) for swarm in ("a", "b") for shard in ("", "0", "1", "01")
    }
    topics = (wire.PROPOSALS, wire.feedback_to("QmA"), wire.feedback_to("QmB"))
    keys |= {directory.directory_key(swarm, topic) for swarm in ("a", "b", "a/feedback") for topic in topics}
    assert len(keys | {directory.body_key(b"x" * 32)}) == 18
