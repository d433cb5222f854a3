"""The errors between a node and a chain. Each has its own class, because callers handle each differently."""

from __future__ import annotations

from codezero.errors import IdentityError, LedgerError


class WalletError(LedgerError):
    """The keystore cannot be read, written or opened."""


class OutboxError(LedgerError):
    """The outbox cannot be read or written; what it held before is still there."""


class RpcFault(LedgerError):
    """The RPC gave no usable answer. It may later; whether the request had an effect is unknown."""

    may_pass = True
    retry_after_s: float | None = None
    """Seconds that the server asks to wait; None if it does not."""


class RpcUnreachable(RpcFault):
    """The connection was refused or broke, or the host is unknown."""


class RpcTimeout(RpcFault):
    """The whole answer did not come in time."""


class RpcServerError(RpcFault):
    """The RPC answered with an HTTP status of 500 or more."""


class RpcBadReply(RpcFault):
    """The answer breaks the protocol: HTML, empty, cut off, null, or an answer to another request."""


class RateLimited(RpcFault):
    """The RPC refuses because there were too many requests."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RpcRefused(RpcFault):
    """The RPC answered with an error that has no class of its own here."""


class StaleChain(RpcFault):
    """The chain's round went back, or forward too far: the RPC lags or mixes up answers, or the chain was reset."""


class WrongChain(LedgerError):
    """The RPC serves another chain than the configured one; nothing is sent to it."""


class NoContract(LedgerError):
    """There is no contract at the configured address."""


class Reverted(LedgerError):
    """The contract refuses a call. `name` is as `contract.error_name` returns it."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


class InsufficientFunds(LedgerError):
    """The account cannot pay for the transaction."""


class FeesTooHigh(LedgerError):
    """The chain asks for a higher fee than the user allows."""


class NonceRace(LedgerError):
    """Another transaction of the account took the nonce, so this one was not accepted."""


class AlreadyKnown(LedgerError):
    """The RPC has this same transaction already."""


class ProxyFault(LedgerError):
    """The sign-in app did not take a submission, or may have: the chain has to be asked."""

    may_pass = True


class PeerTaken(IdentityError):
    """The peer id is registered to another account, so the contract takes nothing from this node."""
