import { parseAbi } from "viem";

/** What nodes write to the SwarmCoordinator, and its reasons to refuse that. */
export const coordinatorAbi = parseAbi([
  "function registerPeer(string peerId)",
  "function submitReward(uint256 roundNumber, uint256 stageNumber, int256 reward, string peerId)",
  "function submitWinners(uint256 roundNumber, string[] winners, string peerId)",
  "function getPeerId(address[] accounts) view returns (string[][])",
  "error InvalidRoundNumber()",
  "error InvalidStageNumber()",
  "error InvalidVote()",
  "error InvalidVoterPeerId()",
  "error PeerIdAlreadyRegistered()",
  "error RewardAlreadySubmitted()",
  "error WinnerAlreadyVoted()",
]);

export const marketAbi = parseAbi([
  "function betTokenBalance(string peerId) view returns (uint256)",
  "function guessAnswer(uint256 gameIdx, string peerId, uint256 roundIdx, uint256 choiceIdx, uint256 bet)",
  "function claimReward(uint256 gameIdx, string peerId)",
]);
