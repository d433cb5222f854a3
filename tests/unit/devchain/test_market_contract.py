"""The prediction market for tests, on a real EVM: a game from its start to the claims, and what is refused."""

import pytest
from eth_abi.abi import encode
from web3 import Web3

from tests.chains import ACCOUNTS
from tests.unit.devchain.deployed import Deployed

ANN, BOB = (account.address for account in ACCOUNTS[:2])
COIN = 10**18
SALT = b"s" * 32
GUESS = "guessAnswer(uint256,string,uint256,uint256,uint256)"
CLAIM = "claimReward(uint256,string)"
CREATE = "createNewGame(uint256,uint256,bytes32)"
REVEAL = "revealAnswer(uint256,uint256,bytes32)"
NEXT_ROUND = "incrementRound(uint256)"
BALANCE = "betTokenBalance(string)"


def committed(choice):
    return Web3.keccak(encode(["uint256", "bytes32"], [choice, SALT]))


@pytest.fixture(scope="module")
def market(dev_chain):
    """Peers ann and bob with 100 coins each; account 0 owns the market."""
    coordinator = Deployed(dev_chain, "SwarmCoordinator", dev_chain.coordinator())
    coordinator.send("registerPeer(string)", "ann")
    coordinator.send("registerPeer(string)", "bob", by=1)
    address = dev_chain.client().deploy("PredictionMarket", coordinator.address, ANN, 100 * COIN)
    return Deployed(dev_chain, "PredictionMarket", address)


def new_game(market, rounds=3, choices=2, answer=1):
    number = market.read("gameCount()")
    market.send(CREATE, rounds, choices, committed(answer))
    return number


def test_early_bets_on_the_answer_take_more_of_what_all_have_bet(market):
    before = {peer: market.read(BALANCE, peer) for peer in ("ann", "bob")}
    game = new_game(market)
    assert market.send(GUESS, game, "ann", 0, 1, 6 * COIN) == [
        ("NewGuess", {"gameIdx": game, "peerId": "ann", "roundIdx": 0, "choiceIdx": 1, "bet": 6 * COIN})
    ]
    assert market.send(NEXT_ROUND, game) == [("RoundIncremented", {"gameIdx": game, "roundIdx": 1})]
    market.send(GUESS, game, "bob", 1, 1, 12 * COIN, by=1)
    market.send(GUESS, game, "ann", 1, 0, 6 * COIN)
    tokens = [market.read("choiceTokenBalance(uint256,string,uint256)", game, peer, 1) for peer in ("ann", "bob")]
    assert tokens == [6 * COIN, 6 * COIN]
    assert market.read("choiceSupply(uint256,uint256)", game, 1) == 12 * COIN
    assert market.read("totalBets(uint256)", game) == 24 * COIN
    assert market.send(REVEAL, game, 1, SALT) == [("AnswerRevealed", {"gameIdx": game, "choiceIdx": 1})]
    assert market.send(CLAIM, game, "ann") == [
        ("RewardClaimed", {"gameIdx": game, "peerId": "ann", "reward": 12 * COIN})
    ]
    market.send(CLAIM, game, "bob", by=1)
    assert {peer: market.read(BALANCE, peer) for peer in before} == before


def test_the_views_follow_the_game(market):
    game = new_game(market, rounds=2, choices=4)
    views = ("choiceCount(uint256)", "currentRoundIdx(uint256)", "gameStatus(uint256)")
    assert [market.read(view, game) for view in views] == [4, 0, 1]
    assert [market.read(view, game + 1) for view in views] == [0, 0, 0]
    assert market.read("price(uint256,uint256)", game, 0) == COIN
    market.send(NEXT_ROUND, game)
    assert market.read("price(uint256,uint256)", game, 0) == 2 * COIN
    assert market.read("choiceTokensOut(uint256,uint256,uint256)", game, 0, 9 * COIN) == 9 * COIN // 2
    market.send(REVEAL, game, 1, SALT)
    assert [market.read(view, game) for view in views] == [4, 1, 2]
    assert market.read(BALANCE, "unregistered") == 0


def test_a_guess_that_the_rules_forbid_is_refused_without_a_named_error(market):
    game = new_game(market)
    market.send(GUESS, game, "ann", 0, 0, 1)
    whole = market.read(BALANCE, "bob")
    for refused, by, why in (
        ((GUESS, game, "ann", 0, 1, 1), 0, "already guessed"),
        ((GUESS, game, "bob", 0, 0, 1), 0, "not your peer"),
        ((GUESS, game, "nobody", 0, 0, 1), 0, "not your peer"),
        ((GUESS, game, "bob", 1, 0, 1), 1, "not the current round"),
        ((GUESS, game, "bob", 0, 2, 1), 1, "no such choice"),
        ((GUESS, game, "bob", 0, 0, 0), 1, "bet exceeds the balance"),
        ((GUESS, game, "bob", 0, 0, whole + 1), 1, "bet exceeds the balance"),
        ((GUESS, game + 1, "bob", 0, 0, 1), 1, "no open game"),
        ((CLAIM, game, "ann"), 0, "no answer yet"),
        ((REVEAL, game, 0, SALT), 0, "not the committed answer"),
        ((CREATE, 0, 2, SALT), 0, "no rounds or no choices"),
    ):
        assert market.refusal(*refused, by=by) == why
    market.send(GUESS, game, "bob", 0, 0, whole, by=1)
    assert market.read(BALANCE, "bob") == 0
    market.send(REVEAL, game, 1, SALT)
    assert market.refusal(GUESS, game, "ann", 0, 0, 1) == "no open game"
    assert market.refusal(NEXT_ROUND, game) == "no open game"
    assert market.refusal(CLAIM, game, "ann") == "nothing to claim"
    assert market.refusal(CLAIM, game, "ann", by=1) == "not your peer"


def test_a_reward_is_claimed_once_and_the_last_round_has_none_behind_it(market):
    game = new_game(market, rounds=1, choices=2)
    assert market.refusal(NEXT_ROUND, game) == "no further round"
    market.send(GUESS, game, "ann", 0, 1, COIN)
    market.send(REVEAL, game, 1, SALT)
    market.send(CLAIM, game, "ann")
    assert market.refusal(CLAIM, game, "ann") == "already claimed"


@pytest.mark.parametrize(
    ("signature", "arguments"), [(CREATE, (1, 2, SALT)), (NEXT_ROUND, (0,)), (REVEAL, (0, 1, SALT))]
)
def test_only_the_owner_runs_games(market, signature, arguments):
    assert market.refusal(signature, *arguments, by=1) == "OwnableUnauthorizedAccount"
