"""The coordinator on a real EVM, over HTTP: every function, every error, and the order in which errors are found."""

import pytest
from web3 import Web3

from codezero.ledger import abi
from tests.chains import ACCOUNTS
from tests.unit.devchain.deployed import Deployed

ANN, BOB, EVE = (account.address for account in ACCOUNTS[:3])
REGISTER = "registerPeer(string)"
REWARD = "submitReward(uint256,uint256,int256,string)"
REWARD_UNSIGNED = "submitReward(uint256,uint256,uint256,string)"
WINNERS = "submitWinners(uint256,string[],string)"
ADVANCE = "updateStageAndRound()"
HAS_SUBMITTED = "hasSubmittedRoundStageReward(uint256,uint256,string)"
ROUND_REWARD = "getRoundStageReward(uint256,uint256,address[])"
TOTALS = "getTotalRewards(string[])"
NOBODY = "0x" + "0" * 40


@pytest.fixture(scope="module")
def shared(dev_chain):
    """For tests that leave round 0 as it is: a coordinator of one stage, owned by account 0."""
    return Deployed(dev_chain, "SwarmCoordinator", dev_chain.coordinator())


@pytest.fixture
def fresh(dev_chain):
    return Deployed(dev_chain, "SwarmCoordinator", dev_chain.coordinator())


def test_a_new_coordinator_is_in_round_0_and_its_owner_has_every_role(shared):
    assert [shared.read(f"{name}()") for name in ("currentRound", "currentStage", "stageCount")] == [0, 0, 1]
    for name in ("OWNER_ROLE", "STAGE_MANAGER_ROLE", "BOOTNODE_MANAGER_ROLE"):
        role = shared.read(f"{name}()")
        assert role == Web3.keccak(text=name)
        assert shared.read("hasRole(bytes32,address)", role, ANN) is True
        assert shared.read("hasRole(bytes32,address)", role, BOB) is False


def test_a_coordinator_without_stages_cannot_be_deployed(dev_chain):
    with pytest.raises(Exception, match="StageOutOfBounds"):
        dev_chain.client().deploy("SwarmCoordinator", ANN, 0)


# Rounds


def test_the_next_stage_of_the_only_one_is_the_next_round(fresh):
    events = fresh.send(ADVANCE)
    assert events == [
        ("RoundAdvanced", {"newRoundNumber": 1}),
        ("StageAdvanced", {"roundNumber": 1, "newStage": 0}),
    ]
    assert (fresh.read("currentRound()"), fresh.read("currentStage()")) == (1, 0)


def test_with_three_stages_a_round_advances_behind_the_third(dev_chain):
    three = Deployed(dev_chain, "SwarmCoordinator", dev_chain.coordinator(stages=3))
    seen = []
    for _ in range(4):
        names = [name for name, _ in three.send(ADVANCE)]
        seen.append((three.read("currentRound()"), three.read("currentStage()"), "RoundAdvanced" in names))
    assert seen == [(0, 1, False), (0, 2, False), (1, 0, True), (1, 1, False)]


def test_only_a_stage_manager_advances(shared):
    assert shared.refusal(ADVANCE, by=1) == "OnlyStageManager"


# Roles


def test_the_owner_grants_and_revokes_a_role(fresh):
    role = fresh.read("STAGE_MANAGER_ROLE()")
    assert fresh.send("grantRole(bytes32,address)", role, BOB) == [
        ("RoleGranted", {"role": role, "account": BOB, "sender": ANN})
    ]
    fresh.send(ADVANCE, by=1)
    assert fresh.send("revokeRole(bytes32,address)", role, BOB) == [
        ("RoleRevoked", {"role": role, "account": BOB, "sender": ANN})
    ]
    assert fresh.refusal(ADVANCE, by=1) == "OnlyStageManager"


@pytest.mark.parametrize("signature", ["grantRole(bytes32,address)", "revokeRole(bytes32,address)"])
def test_only_the_owner_deals_with_roles(shared, signature):
    role = shared.read("STAGE_MANAGER_ROLE()")
    assert shared.refusal(signature, role, ANN, by=1) == "OnlyOwner"
    assert shared.read("hasRole(bytes32,address)", role, ANN) is True


# Peers


def test_peers_of_one_account_are_found_by_peer_and_by_account(fresh):
    assert fresh.send(REGISTER, "ann-1") == [("PeerRegistered", {"eoa": ANN, "peerId": "ann-1"})]
    fresh.send(REGISTER, "ann-2")
    fresh.send(REGISTER, "bob-1", by=1)
    assert fresh.read("getEoa(string[])", ["bob-1", "nobody", "ann-2"]) == [BOB, NOBODY, ANN]
    assert fresh.read("getPeerId(address[])", [ANN, EVE, BOB]) == [["ann-1", "ann-2"], [], ["bob-1"]]


@pytest.mark.parametrize("by", [0, 1], ids=["by its owner", "by another"])
def test_a_peer_registers_once(shared, by):
    peer = f"once-{by}"
    shared.send(REGISTER, peer)
    assert shared.refusal(REGISTER, peer, by=by) == "PeerIdAlreadyRegistered"
    assert shared.read("getEoa(string[])", [peer]) == [ANN]


# Rewards


def test_rewards_of_either_sign_add_up_by_peer_and_by_account(fresh):
    for peer in ("one", "two"):
        fresh.send(REGISTER, peer)
    events = fresh.send(REWARD, 0, 0, -7, "one")
    assert events == [
        (
            "RewardSubmitted",
            {"account": ANN, "roundNumber": 0, "stageNumber": 0, "reward": -7, "peerId": "one"},
        ),
        ("CumulativeRewardsUpdated", {"account": ANN, "peerId": "one", "totalRewards": -7}),
    ]
    fresh.send(REWARD_UNSIGNED, 0, 0, 30, "two")
    fresh.send(ADVANCE)
    fresh.send(REWARD, 1, 0, 100, "one")
    assert fresh.read(TOTALS, ["one", "two", "nobody"]) == [93, 30, 0]
    assert fresh.read(ROUND_REWARD, 0, 0, [ANN, BOB]) == [23, 0]
    assert fresh.read(ROUND_REWARD, 1, 0, [ANN]) == [100]
    assert [fresh.read(HAS_SUBMITTED, 0, 0, peer) for peer in ("one", "two", "nobody")] == [True, True, False]
    assert fresh.read(HAS_SUBMITTED, 1, 0, "two") is False


def test_a_reward_counts_once_for_a_peer_round_and_stage(shared):
    shared.send(REGISTER, "double")
    shared.send(REWARD, 0, 0, 5, "double")
    assert shared.refusal(REWARD, 0, 0, 5, "double") == "RewardAlreadySubmitted"
    assert shared.refusal(REWARD_UNSIGNED, 0, 0, 5, "double") == "RewardAlreadySubmitted"
    assert shared.read(TOTALS, ["double"]) == [5]


def test_a_reward_of_a_round_to_come_is_refused_before_anything_else(shared):
    assert shared.refusal(REWARD, 1, 9, 5, "unregistered") == "InvalidRoundNumber"


def test_a_reward_of_a_stage_to_come_is_refused_before_the_peer_is_looked_at(shared):
    assert shared.refusal(REWARD, 0, 1, 5, "unregistered") == "InvalidStageNumber"


def test_a_reward_that_is_there_is_found_before_whose_peer_it_is(shared):
    shared.send(REGISTER, "theirs")
    shared.send(REWARD, 0, 0, 5, "theirs")
    assert shared.refusal(REWARD, 0, 0, 5, "theirs", by=1) == "RewardAlreadySubmitted"


@pytest.mark.parametrize("peer", ["nobodys", "foreign"])
def test_a_reward_for_a_peer_of_another_or_of_nobody_is_refused(shared, peer):
    if peer == "foreign":
        shared.send(REGISTER, peer, by=1)
    assert shared.refusal(REWARD, 0, 0, 5, peer) == "InvalidVoterPeerId"


def test_a_past_round_takes_one_stage_more_than_it_had(fresh):
    fresh.send(REGISTER, "late")
    fresh.send(ADVANCE)
    fresh.send(REWARD, 0, 0, 1, "late")
    fresh.send(REWARD, 0, 1, 2, "late")
    assert fresh.refusal(REWARD, 0, 2, 4, "late") == "InvalidStageNumber"
    assert fresh.refusal(REWARD, 1, 1, 4, "late") == "InvalidStageNumber"
    assert fresh.read(TOTALS, ["late"]) == [3]


# Votes


def test_a_vote_is_counted_for_voter_and_winners(fresh):
    for number, peer in enumerate(("ann", "bob")):
        fresh.send(REGISTER, peer, by=number)
    assert fresh.send(WINNERS, 0, ["bob", "unregistered"], "ann") == [
        (
            "WinnerSubmitted",
            {"account": ANN, "peerId": "ann", "roundNumber": 0, "winners": ["bob", "unregistered"]},
        )
    ]
    fresh.send(ADVANCE)
    fresh.send(WINNERS, 1, ["bob"], "ann")
    fresh.send(WINNERS, 0, ["bob"], "bob", by=1)
    assert fresh.read("getVoterVotes(uint256,string)", 0, "ann") == ["bob", "unregistered"]
    assert fresh.read("getVoterVotes(uint256,string)", 1, "bob") == []
    assert [fresh.read("getTotalWins(string)", peer) for peer in ("ann", "bob", "unregistered")] == [0, 3, 1]
    assert [fresh.read("getVoterVoteCount(string)", peer) for peer in ("ann", "bob", "unregistered")] == [2, 1, 0]
    assert fresh.read("uniqueVoters()") == 2


def test_a_vote_is_cast_once_a_round_whoever_asks_again(shared):
    shared.send(REGISTER, "voter")
    shared.send(WINNERS, 0, ["x"], "voter")
    assert shared.refusal(WINNERS, 0, ["y"], "voter") == "WinnerAlreadyVoted"
    assert shared.refusal(WINNERS, 0, ["y"], "voter", by=1) == "WinnerAlreadyVoted"
    assert shared.read("getVoterVotes(uint256,string)", 0, "voter") == ["x"]


def test_votes_are_refused_in_the_order_round_voter_winners(shared):
    shared.send(REGISTER, "bobs", by=1)
    assert shared.refusal(WINNERS, 1, ["x", "x"], "bobs") == "InvalidRoundNumber"
    assert shared.refusal(WINNERS, 0, ["x", "x"], "bobs") == "InvalidVoterPeerId"
    assert shared.refusal(WINNERS, 0, ["x", "y", "x"], "bobs", by=1) == "InvalidVote"
    assert shared.read("getVoterVotes(uint256,string)", 0, "bobs") == []
    assert shared.read("getTotalWins(string)", "y") == 0


def test_a_vote_without_winners_can_be_cast_again(fresh):
    fresh.send(REGISTER, "empty")
    fresh.send(WINNERS, 0, [], "empty")
    fresh.send(WINNERS, 0, ["x"], "empty")
    assert fresh.read("getVoterVoteCount(string)", "empty") == 2
    assert fresh.read("uniqueVoters()") == 1


# Bootnodes


def test_bootnodes_are_added_removed_and_cleared(fresh):
    assert fresh.send("addBootnodes(string[])", ["/a", "/b", "/c"]) == [
        ("BootnodesAdded", {"manager": ANN, "count": 3})
    ]
    assert fresh.send("removeBootnode(uint256)", 0) == [("BootnodeRemoved", {"manager": ANN, "index": 0})]
    assert fresh.read("getBootnodes()") == ["/c", "/b"]
    fresh.send("removeBootnode(uint256)", 1)
    assert (fresh.read("getBootnodes()"), fresh.read("getBootnodesCount()")) == (["/c"], 1)
    assert fresh.refusal("removeBootnode(uint256)", 1) == "InvalidBootnodeIndex"
    assert fresh.send("clearBootnodes()") == [("AllBootnodesCleared", {"manager": ANN})]
    assert fresh.read("getBootnodes()") == []
    assert fresh.refusal("removeBootnode(uint256)", 0) == "InvalidBootnodeIndex"


@pytest.mark.parametrize(
    ("signature", "arguments"),
    [("addBootnodes(string[])", [["/a"]]), ("removeBootnode(uint256)", [0]), ("clearBootnodes()", [])],
)
def test_only_a_bootnode_manager_deals_with_bootnodes(shared, signature, arguments):
    assert shared.refusal(signature, *arguments, by=1) == "OnlyBootnodeManager"


def test_what_later_versions_removed_is_not_there():
    assert "winnerLeaderboard" not in {entry.get("name") for entry in abi.load("SwarmCoordinator").abi}
