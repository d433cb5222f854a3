"""The SwarmCoordinator contract: reading it, and having it record registrations, rewards and votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from codezero.ledger.contract import Contract, ContractCall, checksummed
from codezero.ledger.faults import RpcBadReply, StaleChain
from codezero.ledger.rpc import LATEST, Rpc, call_request
from codezero.ledger.transactions import Journal
from codezero.types import RoundId

MAX_ROUND = 1 << 53
"""A bound on round and stage that no real swarm reaches; a greater number is a bad reply."""
MAX_LEAP = 100
"""Rounds that the chain may advance between two polls, however short the time between them."""
MAX_ROUNDS_PER_S = 10.0
"""Further rounds that it may advance in each second between them, more than any swarm does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainView:
    """The contract's state at one poll, as far as it concerns a node."""

    round_id: RoundId
    owner: str | None
    """The account that the peer id is registered to; None if it is not."""
    balance_wei: int
    """The balance of the node's account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The state of one submission on the chain."""

    recorded: bool
    """True if the contract has recorded it; for a registration, if the peer id is registered to the account."""
    receipts: dict[str, bool]
    """For each transaction that was mined, by its hash: True if it succeeded."""
    nonce: int
    """The number of transactions of the account that were mined."""


class Coordinator:
    """Reads the contract. All methods raise RpcFault, WrongChain, NoContract."""

    def __init__(self, contract: Contract, rpc: Rpc) -> None:
        self._contract, self._rpc = contract, rpc
        self.address = contract.address

    def bootnodes(self) -> tuple[str, ...]:
        """Returns the multiaddresses of the swarm's bootnodes; untrusted text."""
        ((found,),) = self._rpc.read([self._contract.call("getBootnodes()")])
        return tuple(cast(Any, found))

    def earned(self, peer_id: str) -> tuple[int, int]:
        """Returns the points and the votes that a peer has earned."""
        calls = [("getTotalRewards(string[])", [peer_id]), ("getTotalWins(string)", peer_id)]
        (rewards,), (wins,) = self._rpc.read([self._contract.call(name, argument) for name, argument in calls])
        return sum(cast(Any, rewards)), cast(Any, wins)

    def view(self, peer_id: str, account: str) -> ChainView:
        """Polls all that a node needs to know, in one HTTP request."""
        calls = [
            self._contract.call("currentRound()"),
            self._contract.call("currentStage()"),
            self._owner(peer_id),
        ]
        answers = self._rpc.ask([*map(call_request, calls), ("eth_getBalance", [account, LATEST])])
        values = [self._rpc.values(call, answer) for call, answer in zip(calls, answers[:-1], strict=True)]
        number, stage, owners = (cast(Any, value[0]) for value in values)
        if max(number, stage) > MAX_ROUND:
            raise RpcBadReply(f"the RPC says it is round {number:.4g} stage {stage:.4g}: something is wrong with it")
        return ChainView(
            round_id=RoundId(number=number, stage=stage),
            owner=_owner_of(owners),
            balance_wei=self._rpc.quantity(answers[-1], "eth_getBalance"),
        )

    def registration(self, peer_id: str, account: str, hashes: Sequence[str]) -> Standing:
        """Returns the state of a peer's registration to an account; `hashes` are those of its transactions."""
        ((owners,),), receipts, nonce = self._rpc.look([self._owner(peer_id)], account, hashes)
        return Standing(recorded=_owner_of(owners) == account, receipts=receipts, nonce=nonce)

    def reward(self, round_id: RoundId, peer_id: str, account: str, hashes: Sequence[str]) -> Standing:
        """Returns the state of the reward of a round, as `registration` does."""
        signature = "hasSubmittedRoundStageReward(uint256,uint256,string)"
        record = self._contract.call(signature, round_id.number, round_id.stage, peer_id)
        return self._standing(record, account, hashes)

    def vote(self, round_number: int, peer_id: str, account: str, hashes: Sequence[str]) -> Standing:
        """Returns the state of the vote of a round, as `registration` does."""
        record = self._contract.call("getVoterVotes(uint256,string)", round_number, peer_id)
        return self._standing(record, account, hashes)

    def broadcast(self, raw: bytes) -> None:
        """Sends a signed transaction, as `Rpc.broadcast`."""
        self._rpc.broadcast(raw)

    def _standing(self, record: ContractCall, account: str, hashes: Sequence[str]) -> Standing:
        """`record` is a call whose result is true or not empty once the contract has it."""
        ((found,),), receipts, nonce = self._rpc.look([record], account, hashes)
        return Standing(recorded=bool(found), receipts=receipts, nonce=nonce)

    def _owner(self, peer_id: str) -> ContractCall:
        return self._contract.call("getEoa(string[])", [peer_id])


class Sender(Protocol):
    """Sends calls as one account."""

    address: str
    """The account's checksummed address."""

    def send(self, call: ContractCall, journal: Journal) -> str:
        """Returns the hash of the transaction that was sent. Raises Reverted with the name of the contract's error, or
        another LedgerError of `faults`. A sender that signs stores the transaction in the journal before sending it;
        one that has a service sign calls the journal's `hand_over` before asking it."""
        ...


class CoordinatorWriter:
    """Has the contract record registrations, rewards and votes. Each method returns and raises as `Sender.send`."""

    def __init__(self, contract: Contract, sender: Sender) -> None:
        self._contract, self.sender = contract, sender
        self.address = sender.address
        """The checksummed account that will own the peer id."""

    def register_peer(self, peer_id: str, journal: Journal) -> str:
        call = self._contract.call("registerPeer(string)", peer_id, path="register-peer", peerId=peer_id)
        return self.sender.send(call, journal)

    def submit_reward(self, round_id: RoundId, reward: int, peer_id: str, journal: Journal) -> str:
        signature = "submitReward(uint256,uint256,int256,string)"
        fields = {"roundNumber": round_id.number, "stageNumber": round_id.stage, "reward": reward, "peerId": peer_id}
        arguments = (round_id.number, round_id.stage, reward, peer_id)
        return self.sender.send(self._contract.call(signature, *arguments, path="submit-reward", **fields), journal)

    def submit_winners(self, round_number: int, winners: Sequence[str], peer_id: str, journal: Journal) -> str:
        signature = "submitWinners(uint256,string[],string)"
        fields = {"roundNumber": round_number, "winners": list(winners), "peerId": peer_id}
        arguments = (round_number, list(winners), peer_id)
        return self.sender.send(self._contract.call(signature, *arguments, path="submit-winner", **fields), journal)


def check_round(seen: RoundId | None, found: RoundId, elapsed_s: float) -> None:
    """Raises StaleChain: the round `found` cannot come `elapsed_s` after `seen`; it may answer another request."""
    if seen is None:
        return
    if (found.number, found.stage) < (seen.number, seen.stage):
        raise StaleChain(
            f"the chain is at round {found.number} stage {found.stage} and was at {seen.number} stage {seen.stage}: "
            "the RPC lags and will catch up, or the chain was started anew and needs a new state_dir"
        )
    if found.number - seen.number > MAX_LEAP + elapsed_s * MAX_ROUNDS_PER_S:
        raise StaleChain(
            f"the chain is at round {found.number} and was at {seen.number} {elapsed_s:.0f} s ago, which is "
            "impossible: the RPC mixes up answers"
        )


def _owner_of(owners: Any) -> str | None:
    """Returns the first address, checksummed, since eth-abi gives lower case; None if there is none or it is zero."""
    return None if not owners or int(owners[0], 16) == 0 else checksummed(owners[0])
