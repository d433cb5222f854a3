"""The user's smart account, for which the sign-in app holds the session key and pays the fees.

The app is asked to write, and the chain is asked whether the write arrived.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from codezero.errors import LedgerError
from codezero.ledger.contract import ContractCall, checksummed
from codezero.ledger.faults import ProxyFault, Reverted, RpcFault
from codezero.ledger.http import HttpReply, Server, decode, shown
from codezero.ledger.transactions import Journal

TIMEOUT_S = 30.0
"""Longest wait in seconds for a whole answer: the app waits for its bundler. A late transaction may still be mined."""
MAX_FILE_BYTES = 1 << 20
KEYS = "userApiKey.json"
"""The app's file of session keys, by user."""
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")
_ERROR_NAME = re.compile(r"[A-Z][A-Za-z0-9]{0,63}")
"""The form of a contract's error name; the app's other errors are sentences."""


class _Taken(msgspec.Struct):
    hash: str


class _Refused(msgspec.Struct):
    error: str


class _Key(msgspec.Struct, rename="camel"):
    """A session key's entry, without its private key, which is not read."""

    activated: bool = False
    account_address: str | None = None
    deferred_action_digest: str = ""


class AppAccount:
    """One user's smart account, which writes through the app."""

    def __init__(self, server: Server, org_id: str, address: str, login_dir: Path) -> None:
        self._server, self._org_id, self.address, self._login_dir = server, org_id, address, login_dir

    def send(self, call: ContractCall, journal: Journal) -> str:
        """Has the app make a call, and returns the hash of the transaction that it sent. The journal notes only that
        the app was asked. Raises Reverted: the app answers HTTP 400 with the name of a contract's error; ProxyFault:
        anything else."""
        journal.hand_over()
        name = call.path
        content = msgspec.json.encode({"orgId": self._org_id, **call.fields})
        try:
            reply = self._server.post(content, f"/api/{name}", credentials(self._login_dir))
        except RpcFault as error:
            raise ProxyFault(str(error)) from error
        if reply.status == 200:
            return self._hash(reply)
        said = _error_in(reply)
        if reply.status == 400 and _ERROR_NAME.fullmatch(said):
            raise Reverted(f"the contract refuses {name}: {said}", said)
        if reply.status == 400:
            raise ProxyFault(f"{self._server.place} refuses {name} ({shown(said)}): is it of the same version?")
        if reply.status == 401:
            raise ProxyFault(f"{self._server.place} refuses {name}: {shown(said)}; rewards wait until then")
        if reply.status == 403:
            raise ProxyFault(
                f"{self._server.place} refuses {name} ({shown(said)}): ledger.login_dir={self._login_dir} has to be "
                "the temp-data of this app; rewards wait until then"
            )
        if reply.status == 404:
            raise ProxyFault(
                f"{self._server.place} does not know the user {shown(self._org_id)} ({shown(said)}): sign in there "
                "again, or correct ledger.org_id or ledger.proxy_url"
            )
        raise ProxyFault(
            f"{self._server.place} answered {name} with HTTP {reply.status} ({shown(said)}): the chain tells whether "
            "it arrived; asked again later"
        )

    def _hash(self, reply: HttpReply) -> str:
        try:
            found = decode(reply.body, _Taken).hash
        except ValueError as error:
            raise ProxyFault(f"{self._server.place} sent {error}: the chain tells whether it arrived") from error
        if not _HASH.fullmatch(found):
            raise ProxyFault(
                f"{self._server.place} sent {shown(found[:40])!r}, not a hash: the chain will tell if it arrived"
            )
        return found


def app_account(*, proxy_url: str, org_id: str, account_address: str, login_dir: Path) -> AppAccount:
    """Returns the account, without a request. An empty `org_id` or `account_address` is read from the app's folder.
    Raises LedgerError: an address or URL is not valid, or nobody has signed in."""
    server = Server(proxy_url.rstrip("/"), what="the sign-in app", setting="ledger.proxy_url", timeout_s=TIMEOUT_S)
    org_id = org_id or _only_user(login_dir)
    try:
        address = checksummed(account_address or _smart_account(login_dir, org_id))
    except ValueError as error:
        raise LedgerError(f"ledger.account_address: {error}") from error
    return AppAccount(server, org_id, address, login_dir)


def credentials(login_dir: Path) -> dict[str, str]:
    """Returns the header by which the app recognises its user's nodes, with the token from the app's folder, which only
    that user can read. Empty if there is no token: an app of another machine may need none."""
    token = token_of(login_dir)
    return {"Authorization": f"Bearer {token}"} if token else {}


def token_of(login_dir: Path) -> str:
    """Returns the token in an app's folder; empty if there is none."""
    try:
        with open(login_dir / "token", "rb") as file:
            token = file.read(200).strip().decode("ascii", "replace")
    except OSError:
        return ""
    return token if re.fullmatch(r"[\w-]{20,100}", token) else ""


def _only_user(login_dir: Path) -> str:
    """Returns the id of the one user who has signed in on this machine. Raises LedgerError: nobody has, or several."""
    users = _accounts(login_dir)
    if not users:
        raise _nobody(login_dir / KEYS, "has no activated key")
    if len(users) > 1:
        ids = ", ".join(shown(org_id) for org_id in list(users)[:5])
        raise LedgerError(f"{len(users)} users have signed in ({ids}): choose one with ledger.org_id=...")
    return next(iter(users))


def _smart_account(login_dir: Path, org_id: str) -> str:
    """Returns the address that the contract sees. Raises LedgerError: the user has no activated key."""
    found = _accounts(login_dir).get(org_id)
    if found is None:
        raise _nobody(login_dir / KEYS, f"has no activated key of the user {shown(org_id)}")
    return found


def _accounts(login_dir: Path) -> dict[str, str]:
    """Returns the smart account of each user's newest activated session key: a sign-in that was given up leaves keys
    that are not activated. Raises LedgerError: the app's file is missing or damaged."""
    return {
        org_id: key.account_address
        for org_id, saved in session_keys(login_dir).items()
        for key in saved
        if key.activated and key.account_address
    }


def session_keys(login_dir: Path) -> dict[str, list[_Key]]:
    """Returns each user's session keys, the newest last. Raises LedgerError: the app's file is missing or damaged."""
    path = login_dir / KEYS
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise _nobody(path, "is missing") from error
    except OSError as error:
        raise LedgerError(f"cannot read {path}: {error.strerror}; check ledger.login_dir and its rights") from error
    try:
        if len(raw) > MAX_FILE_BYTES:
            raise ValueError
        return msgspec.json.decode(raw, type=dict[str, list[_Key]])
    except (msgspec.MsgspecError, ValueError, RecursionError):  # from None: its text may hold a private key
        raise LedgerError(f"{path} is damaged or of another program: sign in again, or give ledger.login_dir") from None


def _nobody(path: Path, what: str) -> LedgerError:
    return LedgerError(
        f"nobody has signed in: {path} {what}; sign in first, in a browser at ledger.proxy_url (as shipped "
        "http://localhost:3000 there), or give ledger.login_dir, or ledger.org_id and ledger.account_address"
    )


def _error_in(reply: HttpReply) -> str:
    """Returns the error in the app's reply, or the beginning of a reply of another form."""
    try:
        return decode(reply.body, _Refused).error
    except ValueError:
        return reply.body[:60].decode("utf-8", "replace")
