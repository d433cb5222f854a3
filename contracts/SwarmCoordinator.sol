// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// The rounds, peers, rewards and votes of a swarm, with the calls, checks, events and errors of the public network's
/// coordinator (0.6). Without a proxy: who deploys it names the owner and the number of stages a round has.
contract SwarmCoordinator {
    error InvalidBootnodeIndex();
    error InvalidRoundNumber();
    error InvalidStageNumber();
    error InvalidVote();
    error InvalidVoterPeerId();
    error OnlyBootnodeManager();
    error OnlyOwner();
    error OnlyStageManager();
    error PeerIdAlreadyRegistered();
    error RewardAlreadySubmitted();
    error StageOutOfBounds();
    error WinnerAlreadyVoted();

    event AllBootnodesCleared(address indexed manager);
    event BootnodeRemoved(address indexed manager, uint256 index);
    event BootnodesAdded(address indexed manager, uint256 count);
    event CumulativeRewardsUpdated(address indexed account, string peerId, int256 totalRewards);
    event PeerRegistered(address indexed eoa, string peerId);
    event RewardSubmitted(
        address indexed account,
        uint256 indexed roundNumber,
        uint256 indexed stageNumber,
        int256 reward,
        string peerId
    );
    event RoleGranted(bytes32 indexed role, address indexed account, address indexed sender);
    event RoleRevoked(bytes32 indexed role, address indexed account, address indexed sender);
    event RoundAdvanced(uint256 indexed newRoundNumber);
    event StageAdvanced(uint256 indexed roundNumber, uint256 newStage);
    event WinnerSubmitted(address indexed account, string peerId, uint256 indexed roundNumber, string[] winners);

    bytes32 public constant OWNER_ROLE = keccak256("OWNER_ROLE");
    bytes32 public constant STAGE_MANAGER_ROLE = keccak256("STAGE_MANAGER_ROLE");
    bytes32 public constant BOOTNODE_MANAGER_ROLE = keccak256("BOOTNODE_MANAGER_ROLE");

    uint256 public immutable stageCount;
    uint256 public currentRound;
    uint256 public currentStage;
    /// Peers that have voted at least once.
    uint256 public uniqueVoters;

    struct Peer {
        address account;
        uint256 wins;
        uint256 votes;
        int256 rewards;
    }

    mapping(bytes32 role => mapping(address account => bool)) public hasRole;
    mapping(string peerId => Peer) private peers;
    mapping(address account => string[]) private peerIds;
    mapping(uint256 round => mapping(string peerId => string[])) private votes;
    mapping(uint256 round => mapping(uint256 stage => mapping(string peerId => bool))) private rewarded;
    mapping(uint256 round => mapping(uint256 stage => mapping(address account => int256))) private rewards;
    string[] private bootnodes;

    constructor(address owner, uint256 stages) {
        if (stages == 0) revert StageOutOfBounds();
        stageCount = stages;
        setRole(OWNER_ROLE, owner);
        setRole(STAGE_MANAGER_ROLE, owner);
        setRole(BOOTNODE_MANAGER_ROLE, owner);
    }

    // Roles

    function grantRole(bytes32 role, address account) external {
        if (!hasRole[OWNER_ROLE][msg.sender]) revert OnlyOwner();
        setRole(role, account);
    }

    function revokeRole(bytes32 role, address account) external {
        if (!hasRole[OWNER_ROLE][msg.sender]) revert OnlyOwner();
        hasRole[role][account] = false;
        emit RoleRevoked(role, account, msg.sender);
    }

    function setRole(bytes32 role, address account) private {
        hasRole[role][account] = true;
        emit RoleGranted(role, account, msg.sender);
    }

    // Rounds

    /// The next stage; behind the last one stage 0 of the next round.
    function updateStageAndRound() external returns (uint256, uint256) {
        if (!hasRole[STAGE_MANAGER_ROLE][msg.sender]) revert OnlyStageManager();
        if (currentStage + 1 < stageCount) {
            ++currentStage;
        } else {
            currentStage = 0;
            ++currentRound;
            emit RoundAdvanced(currentRound);
        }
        emit StageAdvanced(currentRound, currentStage);
        return (currentRound, currentStage);
    }

    // Peers

    /// Whoever registers a peer id first owns it, for good.
    function registerPeer(string calldata peerId) external {
        if (peers[peerId].account != address(0)) revert PeerIdAlreadyRegistered();
        peers[peerId].account = msg.sender;
        peerIds[msg.sender].push(peerId);
        emit PeerRegistered(msg.sender, peerId);
    }

    function getEoa(string[] calldata ids) external view returns (address[] memory accounts) {
        accounts = new address[](ids.length);
        for (uint256 i = 0; i < ids.length; ++i) accounts[i] = peers[ids[i]].account;
    }

    function getPeerId(address[] calldata accounts) external view returns (string[][] memory ids) {
        ids = new string[][](accounts.length);
        for (uint256 i = 0; i < accounts.length; ++i) ids[i] = peerIds[accounts[i]];
    }

    // Rewards

    function submitReward(uint256 roundNumber, uint256 stageNumber, int256 reward, string calldata peerId) external {
        record(roundNumber, stageNumber, reward, peerId);
    }

    function submitReward(uint256 roundNumber, uint256 stageNumber, uint256 reward, string calldata peerId) external {
        record(roundNumber, stageNumber, int256(reward), peerId);
    }

    /// The order of checks, and that a past round takes one stage more than it had, are the deployed contract's.
    function record(uint256 roundNumber, uint256 stageNumber, int256 reward, string calldata peerId) private {
        if (roundNumber > currentRound) revert InvalidRoundNumber();
        uint256 lastStage = roundNumber == currentRound ? currentStage : stageCount;
        if (stageNumber > lastStage) revert InvalidStageNumber();
        if (rewarded[roundNumber][stageNumber][peerId]) revert RewardAlreadySubmitted();
        Peer storage peer = peers[peerId];
        if (peer.account != msg.sender) revert InvalidVoterPeerId();

        rewarded[roundNumber][stageNumber][peerId] = true;
        rewards[roundNumber][stageNumber][msg.sender] += reward;
        peer.rewards += reward;
        emit RewardSubmitted(msg.sender, roundNumber, stageNumber, reward, peerId);
        emit CumulativeRewardsUpdated(msg.sender, peerId, peer.rewards);
    }

    function hasSubmittedRoundStageReward(
        uint256 roundNumber,
        uint256 stageNumber,
        string calldata peerId
    ) external view returns (bool) {
        return rewarded[roundNumber][stageNumber][peerId];
    }

    /// By account: the sum over the peers of each.
    function getRoundStageReward(
        uint256 roundNumber,
        uint256 stageNumber,
        address[] calldata accounts
    ) external view returns (int256[] memory sums) {
        sums = new int256[](accounts.length);
        for (uint256 i = 0; i < accounts.length; ++i) sums[i] = rewards[roundNumber][stageNumber][accounts[i]];
    }

    function getTotalRewards(string[] calldata ids) external view returns (int256[] memory totals) {
        totals = new int256[](ids.length);
        for (uint256 i = 0; i < ids.length; ++i) totals[i] = peers[ids[i]].rewards;
    }

    // Votes

    /// Winners need not be registered. A vote without winners counts as one that was cast, and may be cast again:
    /// that, too, is as deployed.
    function submitWinners(uint256 roundNumber, string[] calldata winners, string calldata peerId) external {
        if (roundNumber > currentRound) revert InvalidRoundNumber();
        string[] storage vote = votes[roundNumber][peerId];
        if (vote.length != 0) revert WinnerAlreadyVoted();
        Peer storage voter = peers[peerId];
        if (voter.account != msg.sender) revert InvalidVoterPeerId();

        for (uint256 i = 0; i < winners.length; ++i) {
            for (uint256 j = 0; j < i; ++j) {
                if (keccak256(bytes(winners[i])) == keccak256(bytes(winners[j]))) revert InvalidVote();
            }
            vote.push(winners[i]);
            ++peers[winners[i]].wins;
        }
        if (voter.votes == 0) ++uniqueVoters;
        ++voter.votes;
        emit WinnerSubmitted(msg.sender, peerId, roundNumber, winners);
    }

    function getVoterVotes(uint256 roundNumber, string calldata peerId) external view returns (string[] memory) {
        return votes[roundNumber][peerId];
    }

    function getVoterVoteCount(string calldata peerId) external view returns (uint256) {
        return peers[peerId].votes;
    }

    function getTotalWins(string calldata peerId) external view returns (uint256) {
        return peers[peerId].wins;
    }

    // Bootnodes

    modifier onlyBootnodeManager() {
        if (!hasRole[BOOTNODE_MANAGER_ROLE][msg.sender]) revert OnlyBootnodeManager();
        _;
    }

    function addBootnodes(string[] calldata added) external onlyBootnodeManager {
        for (uint256 i = 0; i < added.length; ++i) bootnodes.push(added[i]);
        emit BootnodesAdded(msg.sender, added.length);
    }

    /// The last one takes the place of the one removed.
    function removeBootnode(uint256 index) external onlyBootnodeManager {
        if (index >= bootnodes.length) revert InvalidBootnodeIndex();
        bootnodes[index] = bootnodes[bootnodes.length - 1];
        bootnodes.pop();
        emit BootnodeRemoved(msg.sender, index);
    }

    function clearBootnodes() external onlyBootnodeManager {
        delete bootnodes;
        emit AllBootnodesCleared(msg.sender);
    }

    function getBootnodes() external view returns (string[] memory) {
        return bootnodes;
    }

    function getBootnodesCount() external view returns (uint256) {
        return bootnodes.length;
    }
}
