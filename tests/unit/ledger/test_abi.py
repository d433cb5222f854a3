"""What a node knows of the contracts: their calls, and their errors by name."""

import pytest
from eth_utils.abi import abi_to_signature

from codezero.ledger import abi

# Read from the code of the contract that is deployed on the testnet.
SELECTORS = {
    "0x723dc675": "PeerIdAlreadyRegistered",
    "0xe39ce02e": "RewardAlreadySubmitted",
    "0x4197f6ea": "InvalidRoundNumber",
    "0x1614b50c": "InvalidVoterPeerId",
    "0xf7d20563": "InvalidStageNumber",
    "0x3d51d827": "WinnerAlreadyVoted",
    "0xd5dd0c66": "InvalidVote",
    "0x0719ac8c": "OnlyStageManager",
    "0x5fc483c5": "OnlyOwner",
    "0x014c1cb5": "OnlyBootnodeManager",
    "0x7d8aaf0e": "InvalidBootnodeIndex",
    "0xfc4e0d7c": "StageOutOfBounds",
}


def test_an_error_is_known_by_its_first_four_bytes():
    names = abi.error_names()
    assert {selector: names[selector] for selector in SELECTORS} == SELECTORS


@pytest.mark.parametrize(
    "signature",
    [
        "currentRound()",
        "currentStage()",
        "stageCount()",
        "getBootnodes()",
        "getEoa(string[])",
        "getPeerId(address[])",
        "getTotalRewards(string[])",
        "getTotalWins(string)",
        "getVoterVoteCount(string)",
        "getVoterVotes(uint256,string)",
        "getRoundStageReward(uint256,uint256,address[])",
        "hasSubmittedRoundStageReward(uint256,uint256,string)",
        "uniqueVoters()",
        "registerPeer(string)",
        "submitReward(uint256,uint256,int256,string)",
        "submitReward(uint256,uint256,uint256,string)",
        "submitWinners(uint256,string[],string)",
        "updateStageAndRound()",
        "addBootnodes(string[])",
        "removeBootnode(uint256)",
        "clearBootnodes()",
    ],
)
def test_the_coordinator_has_every_call_of_the_deployed_one(signature):
    functions = [entry for entry in abi.load("SwarmCoordinator").abi if entry["type"] == "function"]
    assert signature in map(abi_to_signature, functions)
