// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

interface ICoordinator {
    function getEoa(string[] calldata peerIds) external view returns (address[] memory);
}

/// A small market to test a client against: the public one's calls, views and events; the rules behind them are ours,
/// since its source is not public. As there, a refused game call carries no named error.
///
/// A game has rounds, in each of which a peer may bet once. A bet buys tokens of a choice at the round's price, which
/// rises by 1e18 a round, so early bets buy more. When the answer is known, all bets are shared out over its tokens.
contract PredictionMarket {
    error OwnableUnauthorizedAccount(address account);

    event NewGameCreated(uint256 indexed gameIdx, uint256 roundCount, uint256 choiceCount, bytes32 merkleRoot);
    event RoundIncremented(uint256 indexed gameIdx, uint256 roundIdx);
    event NewGuess(uint256 indexed gameIdx, string peerId, uint256 roundIdx, uint256 choiceIdx, uint256 bet);
    event AnswerRevealed(uint256 indexed gameIdx, uint256 choiceIdx);
    event RewardClaimed(uint256 indexed gameIdx, string peerId, uint256 reward);

    enum Status {
        None,
        Open,
        Revealed
    }

    struct Game {
        Status status;
        uint256 roundCount;
        uint256 choiceCount;
        uint256 round;
        uint256 answer;
        uint256 bets;
        bytes32 merkleRoot;
        mapping(uint256 choice => uint256) supply;
        mapping(string peerId => mapping(uint256 choice => uint256)) tokens;
        mapping(string peerId => mapping(uint256 round => bool)) guessed;
        mapping(string peerId => bool) claimed;
    }

    ICoordinator public immutable coordinator;
    address public immutable owner;
    /// Bet tokens that every registered peer starts with.
    uint256 public immutable stake;
    uint256 public gameCount;

    mapping(uint256 gameIdx => Game) private games;
    mapping(string peerId => uint256) private won;
    mapping(string peerId => uint256) private spent;

    constructor(ICoordinator coordinator_, address owner_, uint256 stake_) {
        coordinator = coordinator_;
        owner = owner_;
        stake = stake_;
    }

    modifier onlyOwner() {
        if (msg.sender != owner) revert OwnableUnauthorizedAccount(msg.sender);
        _;
    }

    modifier onlyPeer(string calldata peerId) {
        require(accountOf(peerId) == msg.sender, "not your peer");
        _;
    }

    // The owner's side

    /// merkleRoot: keccak256(abi.encode(answer, salt)), which revealAnswer has to match.
    function createNewGame(uint256 roundCount, uint256 choiceCount_, bytes32 merkleRoot) external onlyOwner {
        require(roundCount > 0 && choiceCount_ > 0, "no rounds or no choices");
        Game storage game = games[gameCount];
        game.status = Status.Open;
        game.roundCount = roundCount;
        game.choiceCount = choiceCount_;
        game.merkleRoot = merkleRoot;
        emit NewGameCreated(gameCount++, roundCount, choiceCount_, merkleRoot);
    }

    function incrementRound(uint256 gameIdx) external onlyOwner {
        Game storage game = open(gameIdx);
        require(game.round + 1 < game.roundCount, "no further round");
        emit RoundIncremented(gameIdx, ++game.round);
    }

    function revealAnswer(uint256 gameIdx, uint256 choiceIdx, bytes32 salt) external onlyOwner {
        Game storage game = open(gameIdx);
        require(keccak256(abi.encode(choiceIdx, salt)) == game.merkleRoot, "not the committed answer");
        game.status = Status.Revealed;
        game.answer = choiceIdx;
        emit AnswerRevealed(gameIdx, choiceIdx);
    }

    // The peers' side

    function guessAnswer(
        uint256 gameIdx,
        string calldata peerId,
        uint256 roundIdx,
        uint256 choiceIdx,
        uint256 bet
    ) external onlyPeer(peerId) {
        Game storage game = open(gameIdx);
        require(roundIdx == game.round, "not the current round");
        require(choiceIdx < game.choiceCount, "no such choice");
        require(!game.guessed[peerId][roundIdx], "already guessed");
        require(bet > 0 && bet <= betTokenBalance(peerId), "bet exceeds the balance");
        uint256 tokens = choiceTokensOut(gameIdx, choiceIdx, bet);
        game.guessed[peerId][roundIdx] = true;
        game.tokens[peerId][choiceIdx] += tokens;
        game.supply[choiceIdx] += tokens;
        game.bets += bet;
        spent[peerId] += bet;
        emit NewGuess(gameIdx, peerId, roundIdx, choiceIdx, bet);
    }

    function claimReward(uint256 gameIdx, string calldata peerId) external onlyPeer(peerId) {
        Game storage game = games[gameIdx];
        require(game.status == Status.Revealed, "no answer yet");
        require(!game.claimed[peerId], "already claimed");
        uint256 tokens = game.tokens[peerId][game.answer];
        require(tokens > 0, "nothing to claim");
        game.claimed[peerId] = true;
        uint256 reward = (game.bets * tokens) / game.supply[game.answer];
        won[peerId] += reward;
        emit RewardClaimed(gameIdx, peerId, reward);
    }

    // Views

    function betTokenBalance(string calldata peerId) public view returns (uint256) {
        return accountOf(peerId) == address(0) ? 0 : stake + won[peerId] - spent[peerId];
    }

    function choiceTokenBalance(
        uint256 gameIdx,
        string calldata peerId,
        uint256 choiceIdx
    ) external view returns (uint256) {
        return games[gameIdx].tokens[peerId][choiceIdx];
    }

    function choiceTokensOut(uint256 gameIdx, uint256 choiceIdx, uint256 bet) public view returns (uint256) {
        return (bet * 1e18) / price(gameIdx, choiceIdx);
    }

    function price(uint256 gameIdx, uint256) public view returns (uint256) {
        return 1e18 * (games[gameIdx].round + 1);
    }

    function choiceSupply(uint256 gameIdx, uint256 choiceIdx) external view returns (uint256) {
        return games[gameIdx].supply[choiceIdx];
    }

    function choiceCount(uint256 gameIdx) external view returns (uint256) {
        return games[gameIdx].choiceCount;
    }

    function totalBets(uint256 gameIdx) external view returns (uint256) {
        return games[gameIdx].bets;
    }

    function currentRoundIdx(uint256 gameIdx) external view returns (uint256) {
        return games[gameIdx].round;
    }

    function gameStatus(uint256 gameIdx) external view returns (Status) {
        return games[gameIdx].status;
    }

    function open(uint256 gameIdx) private view returns (Game storage game) {
        game = games[gameIdx];
        require(game.status == Status.Open, "no open game");
    }

    function accountOf(string calldata peerId) private view returns (address) {
        string[] memory ids = new string[](1);
        ids[0] = peerId;
        return coordinator.getEoa(ids)[0];
    }
}
