"""A leaderboard out of a chain's logs: the same whatever the server gives at once, and whatever ends it midway."""

import os
import random
import signal
import sys
import time

import pytest
from eth_abi import encode
from eth_utils.abi import abi_to_signature

from codezero.errors import LedgerError
from codezero.ledger import abi, follow, tally
from codezero.ledger.events import EVENTS, REGISTERED, VOTE, changes
from codezero.ledger.faults import NoContract, RateLimited, RpcBadReply, RpcRefused, RpcTimeout, StaleChain, WrongChain
from codezero.ledger.follow import Follower
from codezero.ledger.jsonrpc import RpcRefusal
from codezero.ledger.rpc import Rpc
from codezero.ledger.tally import FIRST_SPAN, Tally
from tests.unit.ledger.log_chain import ACCOUNT, ADDRESS, CHAIN_ID, LogChain, log, registered, rewarded, voted, word


@pytest.fixture
def made(tmp_path):
    tally = Tally(tmp_path / "leaderboard.sqlite", CHAIN_ID, ADDRESS)
    yield tally
    tally.close()


def follower(chain, tally):
    return Follower(Rpc(chain, chain_id=CHAIN_ID, contracts=[ADDRESS]), ADDRESS, tally)


def read(chain, tally, limit_s=60.0):
    follower(chain, tally).follow(limit_s)
    return is_whole(tally), shown(tally)


def is_whole(tally):
    """Returns True if it has the newest block."""
    progress = tally.progress()
    return progress.read_block == progress.head_block


def shown(tally):
    return [(place.peer_id, place.reward, place.rounds, place.wins, place.last_round) for place in tally.places(100)]


def busy_chain(num_blocks=60, **limits):
    """Three peers, of which one is rewarded in each block."""
    totals = [0, 0, 0]
    blocks = [[registered("a"), registered("b"), registered("c")]]
    for number in range(1, num_blocks):
        peer = number % 3
        totals[peer] += number
        blocks.append([*rewarded("abc"[peer], number, number, totals[peer]), voted("abc"[peer], number, "b", "z")])
    return LogChain(*blocks, **limits), [
        ("c", float(totals[2]), 20, 0, 59),
        ("b", float(totals[1]), 20, 59, 58),
        ("a", float(totals[0]), 19, 0, 57),
        ("z", 0.0, 0, 59, None),
    ]


def test_the_events_are_those_of_the_contract():
    found = {abi_to_signature(entry) for entry in abi.load("SwarmCoordinator").abi if entry["type"] == "event"}
    assert set(EVENTS) <= found


def test_rewards_votes_and_rounds_are_counted_and_so_are_those_who_have_none(made):
    chain = LogChain(
        [registered("a"), registered("b")],
        [*rewarded("a", 3, 5, 5), voted("a", 3, "b")],
        [*rewarded("b", 4, -2, -2), *rewarded("a", 4, 2, 7)],
        [voted("b", 6, "a", "nobody registered")],
    )
    assert read(chain, made) == (
        True,
        [("a", 7.0, 2, 1, 4), ("nobody registered", 0.0, 0, 1, None), ("b", -2.0, 1, 1, 6)],
    )
    assert made.own("b")[1] == 3
    assert (made.own("a")[0].reward, made.own("a")[1], made.own("c")) == (7.0, 1, None)
    assert made.num_peers() == 3
    assert [place.peer_id for place in made.places(1)] == ["a"]


@pytest.mark.parametrize("limits", [{}, {"most_blocks": 7}, {"most_blocks": 1}, {"most_logs": 10}])
def test_however_much_a_server_gives_at_once(made, limits, monkeypatch):
    monkeypatch.setattr(follow, "RATE_WAIT_S", 0.0)
    chain, expected = busy_chain(**limits)
    assert read(chain, made) == (True, expected)
    assert read(chain, made) == (True, expected)


class RefusingChain(LogChain):
    """Refuses a whole HTTP request for too many blocks, as by HTTP 413."""

    def ask(self, requests, *, repeat=True):
        answers = super().ask(requests)
        if any(isinstance(answer, RpcRefusal) for answer in answers):
            raise RpcRefused("HTTP 413")
        return answers


def test_a_server_that_refuses_the_whole_request_is_asked_for_fewer_blocks(made):
    blocks, expected = busy_chain()
    assert read(RefusingChain(*blocks.blocks, most_blocks=7), made) == (True, expected)


def test_only_what_is_new_is_asked_for_and_only_the_newest_blocks_again(made):
    chain, _ = busy_chain()
    read(chain, made)
    assert chain.asked == [(0, 47), (48, 59)]
    chain.asked.clear()
    chain.add([], rewarded("a", 99, 1000, 5000))
    assert read(chain, made)[1][0] == ("a", 5000.0, 20, 0, 99)
    assert chain.asked == [(48, 49), (50, 61)]


def test_the_span_is_learnt_and_tried_out_again_later(made):
    chain, _ = busy_chain(most_blocks=7)
    read(chain, made)
    learnt = made.progress().span
    assert 1 <= learnt <= 7
    chain.asked.clear()
    chain.most_blocks = None
    chain.add(*[[]] * 100)
    read(chain, made)
    assert made.progress().span > learnt
    assert max(last - first for first, last in chain.asked) > 7


def test_an_empty_chain_is_read_in_long_steps(made):
    chain = LogChain(*[[]] * 100_000)
    assert read(chain, made) == (True, [])
    assert len(chain.asked) <= 8
    assert chain.asked[0] == (0, FIRST_SPAN - 1)


def test_when_time_is_over_what_was_read_is_kept_and_gone_on_with(made, clock):
    chain, expected = busy_chain(most_blocks=4)
    rounds = 0
    chain.answers["eth_getLogs"] = lambda found: clock.skip(1.0) or found
    while made.progress().read_block < 59:
        _, places = read(chain, made, 10.5)
        rounds += 1
    assert rounds > 2
    assert places == expected


def test_a_block_that_is_replaced_near_the_end_leaves_no_trace(made):
    chain = LogChain([registered("a")], *[[]] * 20, rewarded("a", 1, 5, 5), [voted("a", 1, "b")])
    assert read(chain, made)[1] == [("a", 5.0, 1, 0, 1), ("b", 0.0, 0, 1, None)]
    chain.cut(2)
    chain.add(rewarded("a", 1, 2, 2), [])
    assert read(chain, made)[1] == [("a", 2.0, 1, 0, 1)]


def test_a_chain_that_is_replaced_far_back_is_read_anew(made, caplog):
    chain = LogChain([registered("a")], rewarded("a", 1, 5, 5), *[[]] * 30)
    assert read(chain, made)[1] == [("a", 5.0, 1, 0, 1)]
    chain.cut(31)
    chain.add(rewarded("b", 1, 3, 3), *[[]] * 40)
    assert read(chain, made)[1] == [("b", 3.0, 1, 0, 1), ("a", 0.0, 0, 0, None)]
    assert "the chain has replaced block 19: the leaderboard is read anew" in caplog.text


def test_random_reorganisations_near_the_end_leave_the_leaderboard_of_the_chain_that_is_left(tmp_path):
    draw = random.Random(20261121)
    for case in range(6):
        chain = LogChain([registered("a")], most_blocks=draw.choice([1, 3, None]))
        kept = Tally(tmp_path / f"kept{case}.sqlite", CHAIN_ID, ADDRESS)
        for number in range(60):
            depth = draw.randrange(1, 13) if draw.random() < 0.3 and number > 14 else 0
            if depth:
                chain.cut(depth)
            for _ in range(depth + 1):
                peer = draw.choice("abc")
                chain.add([*rewarded(peer, number, 1, number), voted(peer, number, draw.choice("abc"))])
            if draw.random() < 0.4:
                read(chain, kept)
        anew = Tally(tmp_path / f"anew{case}.sqlite", CHAIN_ID, ADDRESS)
        assert read(chain, kept) == read(chain, anew)
        kept.close()
        anew.close()


def test_a_server_that_lags_is_waited_for(made):
    chain, _ = busy_chain()
    read(chain, made)
    chain.cut(30)
    with pytest.raises(StaleChain, match="read up to block 47, which the RPC does not have"):
        read(chain, made)
    assert made.progress().next_block == 48  # what was read is kept


POINTERS = b"".join(
    number.to_bytes(32, "big")
    for number in (64, 96, 0, 1000, *[32 * 1000] * 1000)  # a thousand strings, all at the same place
)
BOMB = POINTERS + (30_000).to_bytes(32, "big") + b"a" * 30_016
HOSTILE_LOGS = {
    "no list": lambda found: {"a": 1},
    "a string": lambda found: "0x",
    "null": lambda found: None,
    "numbers": lambda found: [1, 2],
    "nothing in it": lambda found: [{}],
    "pending": lambda found: [found[0] | {"blockNumber": None}],
    "another contract": lambda found: [found[0] | {"address": "0x" + "11" * 20}],
    "a block before": lambda found: [found[0] | {"blockNumber": "0x0"}, *found[1:], found[0] | {"blockNumber": "0xff"}],
    "a huge block": lambda found: [found[0] | {"blockNumber": "0x" + "f" * 64}],
    "twice": lambda found: [*found, found[0]],
    "no topics": lambda found: [found[0] | {"topics": []}],
    "too few topics": lambda found: [found[1] | {"topics": found[1]["topics"][:1]}],
    "another event": lambda found: [found[0] | {"topics": [word(1)]}],
    "no data": lambda found: [found[0] | {"data": "0x"}],
    "odd data": lambda found: [found[0] | {"data": "0x1"}],
    "data that is not hex": lambda found: [found[0] | {"data": "0xzz"}],
    "cut off": lambda found: [found[0] | {"data": found[0]["data"][:-64]}],
    "an offset out of this world": lambda found: [found[0] | {"data": "0x" + "ff" * 64}],
    "an endless list": lambda found: [found[-1] | {"data": "0x" + word(64)[2:] + word(64)[2:] + "ff" * 32}],
    "a bomb of pointers": lambda found: [found[-1] | {"data": "0x" + BOMB.hex()}],
    "a round that cannot be": lambda found: [
        found[1] | {"topics": [*found[1]["topics"][:2], "0x" + "ff" * 32, word(0)]}
    ],
}


@pytest.mark.parametrize("kind", HOSTILE_LOGS)
def test_logs_that_cannot_be_change_nothing(made, kind):
    chain = LogChain([registered("a"), *rewarded("a", 1, 5, 5), voted("a", 1, "b")])
    chain.answers["eth_getLogs"] = HOSTILE_LOGS[kind]
    with pytest.raises(RpcBadReply, match=r"the RPC sent|does not decode"):
        read(chain, made)
    assert (shown(made), made.progress().read_block) == ([], -1)
    chain.answers.clear()
    assert read(chain, made) == (True, [("a", 5.0, 1, 0, 1), ("b", 0.0, 0, 1, None)])


def test_a_log_that_was_taken_back_does_not_count(made):
    chain = LogChain([registered("a"), registered("b")])
    chain.answers["eth_getLogs"] = lambda found: [found[0] | {"removed": True}, found[1]]
    assert read(chain, made)[1] == [("b", 0.0, 0, 0, None)]


HOSTILE_ANSWERS = {
    "wrong chain": ("eth_chainId", "0x1", WrongChain, "serves chain 1, not 7"),
    "no contract": ("eth_getCode", "0x", NoContract, "there is no contract at"),
    "a newest block that cannot be": ("eth_blockNumber", "0x" + "f" * 64, RpcBadReply, "not a valid answer"),
    "a newest block that is none": ("eth_blockNumber", "hello", RpcBadReply, "not a valid answer"),
    "no block": ("eth_getBlockByNumber", None, StaleChain, "does not have block 0"),
    "another block": ("eth_getBlockByNumber", {"number": "0x9", "hash": word(1)}, RpcBadReply, "other than block 0"),
    "a block without hash": ("eth_getBlockByNumber", {"number": "0x0"}, RpcBadReply, "other than block 0"),
    "a hash that is none": ("eth_getBlockByNumber", {"number": "0x0", "hash": "x"}, RpcBadReply, "other than block 0"),
}


@pytest.mark.parametrize("kind", HOSTILE_ANSWERS)
def test_servers_that_are_not_what_they_should_be(made, kind):
    method, answer, fault, message = HOSTILE_ANSWERS[kind]
    chain = LogChain([registered("a")])
    chain.answers[method] = lambda _: answer
    with pytest.raises(fault, match=message):
        read(chain, made)
    assert shown(made) == []


def test_a_server_that_refuses_even_one_block_is_not_asked_for_ever(made):
    chain, _ = busy_chain(most_blocks=0)
    with pytest.raises(RpcRefused, match="block range is too wide, at most 0"):
        read(chain, made)
    assert len(chain.asked) <= 8


@pytest.mark.parametrize(
    ("fault", "most"), [(RateLimited("slow down", 4.0), 3), (RpcTimeout("no whole answer"), 8), (RateLimited("x"), 12)]
)
def test_a_server_that_only_limits_or_hangs_ends_it_in_time(made, fault, most, clock, monkeypatch):
    chain, _ = busy_chain()
    monkeypatch.setattr("time.sleep", clock.skip)

    def answer(_):
        raise fault

    chain.answers["eth_getLogs"] = answer
    with pytest.raises(type(fault)):
        read(chain, made, limit_s=10.0)
    assert 1 <= len(chain.asked) <= most


def test_peer_ids_are_other_people_s_text(made):
    """Whoever pays may register anything, so nothing of it may stop the reading or grow without end."""
    long, twin = b"a" * 5000 + b"1", b"a" * 5000 + b"2"
    odd = [b"\xff\xfe not utf-8", b"\x1b[2J\x00</script>", "\N{RIGHT-TO-LEFT OVERRIDE}".encode(), b"", long, twin]
    chain = LogChain([registered_raw(raw) for raw in odd], [voted("voter", 1, "a" * 1000, "\x1b[31m")])
    whole, places = read(chain, made)
    ids = {place[0] for place in places}
    assert whole
    assert {"\ufffd\ufffd not utf-8", "\x1b[2J\x00</script>", "\N{RIGHT-TO-LEFT OVERRIDE}", "", "voter"} < ids
    assert len(ids) == 9
    assert max(map(len, ids)) <= 128
    assert sum(peer.startswith("aaaa") for peer in ids) == 3  # told apart by more than their beginning


def test_a_vote_for_many_takes_no_longer_than_its_length_says():
    count = 60_000
    words = [64, 96, 0, count, *[32 * count] * count, 0]  # all names are the same empty one
    vote = log(VOTE, [ACCOUNT, word(1)], b"".join(number.to_bytes(32, "big") for number in words))
    began_s = time.process_time()
    assert len(changes([{**vote, "blockNumber": "0x0", "logIndex": "0x0"}], ADDRESS, 0, 0)) == 1 + count
    assert time.process_time() - began_s < 2


def registered_raw(raw):
    return log(REGISTERED, [ACCOUNT], encode(["bytes"], [raw]))


def test_rewards_beyond_any_number_of_a_database_are_kept(made):
    chain = LogChain([*rewarded("a", 1, 1, 2**255 - 1), *rewarded("b", 1, 1, -(2**255)), *rewarded("c", 1, 1, 3)])
    assert [(peer, reward) for peer, reward, *_ in read(chain, made)[1]] == [
        ("a", float(2**255)),
        ("c", 3.0),
        ("b", -float(2**255)),
    ]


def test_no_more_peers_are_kept_than_there_may_be(made, monkeypatch):
    monkeypatch.setattr(tally, "MAX_PEERS", 3)
    chain = LogChain([registered(f"peer{number}") for number in range(9)], rewarded("peer0", 1, 4, 4))
    assert read(chain, made)[1] == [("peer0", 4.0, 1, 0, 1), ("peer1", 0.0, 0, 0, None), ("peer2", 0.0, 0, 0, None)]


def test_two_processes_that_read_at_once_count_nothing_twice(made, tmp_path):
    chain, expected = busy_chain(most_blocks=8)
    other = Tally(tmp_path / "leaderboard.sqlite", CHAIN_ID, ADDRESS)

    def overtaken(found):
        chain.answers.clear()
        read(chain, other)
        return found

    chain.answers["eth_getLogs"] = overtaken
    assert read(chain, made) == (True, expected)
    other.close()


def test_another_contract_is_begun_anew(made, tmp_path):
    chain, _ = busy_chain()
    read(chain, made)
    other = Tally(tmp_path / "leaderboard.sqlite", CHAIN_ID, "0x" + "D0" * 20)
    assert (shown(other), other.progress().next_block) == ([], 0)
    other.close()


def test_a_damaged_file_is_read_from_the_chain_again(tmp_path, caplog):
    path = tmp_path / "leaderboard.sqlite"
    path.write_text("hello " * 1000)
    again = Tally(path, CHAIN_ID, ADDRESS)
    chain, expected = busy_chain()
    assert read(chain, again) == (True, expected)
    assert "is damaged" in caplog.text
    again.close()


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(LedgerError, match=r"cannot use .*leaderboard\.sqlite: unable to open"):
        Tally(tmp_path / "missing" / "leaderboard.sqlite", CHAIN_ID, ADDRESS)


def test_killed_anywhere_every_block_counts_once(tmp_path):
    """Children read the chain and are killed at random lines of the code that counts."""
    draw, path = random.Random(8), tmp_path / "leaderboard.sqlite"
    chain, expected = busy_chain(most_blocks=2)
    killed = 0
    while True:
        line = draw.randrange(1, 600)
        child = os.fork()
        if child == 0:
            if killed < 30:
                die_at(line)
            own = Tally(path, CHAIN_ID, ADDRESS)
            follower(chain, own).follow(60.0)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            assert status == 0
            if killed >= 30:
                break
            path.unlink()  # it came to the end: once more
        else:
            killed += 1
    final = Tally(path, CHAIN_ID, ADDRESS)
    assert shown(final) == expected
    final.close()


def die_at(line):
    """Kills this process at that line of `tally` or `follow`."""
    left = line

    def local(frame, event, _):
        nonlocal left
        left -= event == "line"
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return local

    names = (tally.__file__, follow.__file__)
    sys.settrace(lambda frame, *_: local if frame.f_code.co_filename in names else None)
