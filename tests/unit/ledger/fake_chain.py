"""The contract in a dict, with a mempool, and one thing at a time that goes wrong."""

import itertools
import time
from ast import literal_eval

from codezero.ledger.coordinator import ChainView, Standing
from codezero.ledger.faults import (
    AlreadyKnown,
    InsufficientFunds,
    NonceRace,
    OutboxError,
    Reverted,
    RpcTimeout,
    WrongChain,
)
from codezero.ledger.transactions import Transaction
from codezero.types import RoundId

OURS, THEIRS = "0xOurs", "0xTheirs"


class Killed(BaseException):
    """No handler of errors catches it, as none catches kill -9."""


class FakeChain:
    """The contract, a mempool and an account's nonces, and one thing that goes wrong at a time; reads and writer."""

    address = OURS

    def __init__(self):
        self.round = 0
        self.owner = None
        self.rewards, self.votes = {}, {}
        self.nonce = 0
        self.pool, self.receipts = {}, {}
        self.trouble = None
        """For the next call that can have it."""
        self._hashes = itertools.count()

    def take(self, *troubles):
        found, self.trouble = (self.trouble, None) if self.trouble in troubles else (None, self.trouble)
        return found

    def view(self):
        return ChainView(
            round_id=RoundId(number=self.round),
            owner=self.owner,
            balance_wei=1,
        )

    def registration(self, peer_id, account, hashes):
        return self._standing(self.owner == OURS, hashes)

    def reward(self, round_id, peer_id, account, hashes):
        return self._standing(round_id.number in self.rewards, hashes)

    def vote(self, round_number, peer_id, account, hashes):
        return self._standing(round_number in self.votes, hashes)

    def _standing(self, recorded, hashes):
        if self.take("rpc down"):
            raise RpcTimeout("rpc down")
        if self.take("wrong chain"):
            raise WrongChain("wrong chain")
        if self.take("reads lag"):
            return Standing(recorded=False, receipts={}, nonce=max(0, self.nonce - 1))
        receipts = {hash_: self.receipts[hash_] for hash_ in hashes if hash_ in self.receipts}
        return Standing(recorded=recorded, receipts=receipts, nonce=self.nonce)

    def register_peer(self, peer_id, journal):
        return self._send(("register",), journal)

    def submit_reward(self, round_id, reward, peer_id, journal):
        return self._send(("reward", round_id.number, reward), journal)

    def submit_winners(self, round_number, winners, peer_id, journal):
        return self._send(("vote", round_number, tuple(winners)), journal)

    def broadcast(self, raw):
        if self.take("rpc down"):
            raise RpcTimeout("rpc down")
        nonce, call, hash_ = literal_eval(raw.decode())
        self._accept(nonce, call, hash_)

    def _send(self, call, journal):
        if self.take("no funds"):
            raise InsufficientFunds("no funds")
        if name := self._refusal(call):
            raise Reverted(name, name)
        nonce = self.nonce + len(self.pool) if journal.replaces is None else journal.replaces.nonce
        if self.take("nonce race"):
            raise NonceRace("race")
        hash_ = f"0x{next(self._hashes):02x}"
        raw = repr((nonce, call, hash_)).encode()
        if self.take("killed before the journal"):
            raise Killed
        sent = Transaction(
            hash=hash_, raw=raw, nonce=nonce, max_fee_wei=1, tip_wei=1, signed_at_s=time.time(), sent_at_s=0.0
        )
        if self.take("disk full"):
            raise OutboxError("disk full")
        journal.store(sent)
        if self.take("killed before sending"):
            raise Killed
        if self.take("lost on the way"):
            raise RpcTimeout("lost on the way")
        self._accept(nonce, call, hash_)
        if self.take("killed after sending"):
            raise Killed
        if self.take("answer lost"):
            raise RpcTimeout("answer lost")
        return hash_

    def _accept(self, nonce, call, hash_):
        if hash_ in {pooled[1] for pooled in self.pool.values()}:
            raise AlreadyKnown("known")
        if nonce < self.nonce:
            raise NonceRace("nonce too low")
        self.pool[nonce] = (call, hash_)

    def mine(self):
        while self.nonce in self.pool:
            call, hash_ = self.pool.pop(self.nonce)
            self.nonce += 1
            succeeded = self._refusal(call) is None
            self.receipts[hash_] = succeeded
            if succeeded:
                self._record(call)

    def _refusal(self, call):
        kind, *rest = call
        if kind == "register":
            return "PeerIdAlreadyRegistered" if self.owner else None
        if rest[0] > self.round:
            return "InvalidRoundNumber"
        if rest[0] in (self.rewards if kind == "reward" else self.votes):
            return "RewardAlreadySubmitted" if kind == "reward" else "WinnerAlreadyVoted"
        return None if self.owner == OURS else "InvalidVoterPeerId"

    def _record(self, call):
        kind, *rest = call
        if kind == "register":
            self.owner = OURS
        elif kind == "reward":
            self.rewards[rest[0]] = rest[1]
        else:
            self.votes[rest[0]] = rest[1]
