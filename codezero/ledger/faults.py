"""What can go wrong between a node and a chain. Each kind has its own way on, so each has its own name."""

from __future__ import annotations

from codezero.errors import IdentityError, LedgerError


class WalletError(LedgerError):
    """The keystore cannot be read, written or opened."""


class OutboxError(LedgerError):
    """The outbox cannot be read or written; what it held before is still there."""


class RpcFault(LedgerError):
    """The RPC gave no usable answer now; it may later. Nothing is known of what was asked."""

    may_pass = True
    retry_after_s: float | None = None
    """What the server asked for, None if it did not."""


class RpcUnreachable(RpcFault):
    """Refused, unknown host, or the connection broke."""


class RpcTimeout(RpcFault):
    """No whole answer in time."""


class RpcServerError(RpcFault):
    """HTTP 5xx."""


class RpcBadReply(RpcFault):
    """What came is no answer of the protocol: HTML, nothing, cut off, null, another request's answer."""


class RateLimited(RpcFault):
    """Too many requests."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RpcRefused(RpcFault):
    """The RPC answered with an error of no kind that is known here."""


class StaleChain(RpcFault):
    """The chain's round went back or leapt: the RPC lags, mixes up answers, or the chain was started anew."""


class WrongChain(LedgerError):
    """The RPC serves another chain than the configured one: nothing is written to it."""


class NoContract(LedgerError):
    """There is no contract at the configured address."""


class Reverted(LedgerError):
    """The contract refuses a call. `name` is its error's name, or what could be made of the data."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


class InsufficientFunds(LedgerError):
    """The account cannot pay for the transaction."""


class FeesTooHigh(LedgerError):
    """The chain asks for more than the user allows to be paid."""


class NonceRace(LedgerError):
    """Another transaction of the account took the nonce; this one was not accepted."""


class AlreadyKnown(LedgerError):
    """The RPC holds this very transaction already."""


class ProxyFault(LedgerError):
    """The sign-in app did not take a submission, or it is unknown whether it did: only the chain tells."""

    may_pass = True


class PeerTaken(IdentityError):
    """The peer id is registered to another account. Fatal: nothing this node submits can count."""
