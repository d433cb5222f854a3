"""The sign-in app as nodes see it: its HTTP API and its files, in front of a real contract. It keeps the
user's smart account, here a plain one. `mode` has it do one wrong thing."""

import json
import socket
import threading
from contextlib import contextmanager

from codezero.devchain.client import ChainClient
from codezero.errors import LedgerError
from codezero.ledger.faults import Reverted
from tests import local_http
from tests.chains import CHAIN_ID

ORG_ID = "7f1d2c9a-0000-4000-8000-000000000001"
SIGNER = "0x" + "5" * 40
"""The user's own key, which is not the smart account."""
SECRET = "0xfeedfacesecret"
HASH = "0x" + "ab" * 32

SAYS = {
    "bad request": (400, b'{"error": "bad request: orgId"}'),
    "contract says": (400, b'{"error": "EnforcedPause"}'),
    "400 html": (400, b"<html>Bad Request</html>"),
    "400 wrong type": (400, b'{"error": 7}'),
    "expired": (401, b'{"error": "the session key has expired: sign in again"}'),
    "403": (403, b'{"error": "only for the user of this app: send the token in temp-data/token"}'),
    "user not found": (404, b'{"error": "user not found"}'),
    "404 html": (404, b"<html>no such page</html>"),
    "429": (429, b'{"error": "slow down"}'),
    "500": (500, b'{"error": "API key not activated \\u001b[2J"}'),
    "500 html": (500, b"<html>\x1b[31mInternal Server Error</html>"),
    "500 empty": (500, b""),
    "502": (502, b""),
    "redirect": (302, b""),
    "html": (200, b"<html>captive portal</html>"),
    "empty": (200, b""),
    "truncated": (200, b'{"hash": "0xab'),
    "list": (200, b"[1, 2]"),
    "null": (200, b"null"),
    "hash is null": (200, b'{"hash": null}'),
    "hash is a number": (200, b'{"hash": 7}'),
    "hash is short": (200, b'{"hash": "0xab"}'),
    "hash is text": (200, b'{"hash": "\\u001b[31mhello"}'),
    "no hash": (200, b'{"ok": true}'),
    "deep": (200, b"[" * 100_000),
    "not utf-8": (200, b'{"hash": "\xff\xfe"}'),
    "huge": (200, b'"' + b"x" * (5 << 20) + b'"'),
}
"""What nothing comes of."""
AFTER_MINING = {"mined although 500": (500, b'{"error": "timed out"}'), "mined, then html": (200, b"<html>")}


class SignInApp:
    def __init__(self, rpc_url, contract, account, market=None):
        """`account`: an eth-account that holds some ETH; stands for the smart account."""
        self._client = ChainClient(rpc_url, CHAIN_ID, account)
        self._contract = self._client.contract("SwarmCoordinator", contract)
        self._market = market and self._client.contract("PredictionMarket", market)
        self.address = account.address
        self.mode = "ok"
        self.only = None
        """The mode holds for this name of the API alone; None for all."""
        self.asked = []
        """Name and body of each request."""
        self.authorizations = []
        """That header of each request."""
        self.release = threading.Event()

    @contextmanager
    def serving(self):
        app = self

        class Handler(local_http.Handler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                app.authorizations.append(self.headers["authorization"])
                app._answer(self, self.path.removeprefix("/api/"), body)

        with local_http.serving(Handler) as self.url:
            try:
                yield self
            finally:
                self.release.set()

    def names(self):
        return [name for name, _ in self.asked]

    def write_files(self, folder, activated=True):
        """What the app leaves in temp-data after a sign-in."""
        folder.mkdir(parents=True, exist_ok=True)
        user = {"orgId": ORG_ID, "address": SIGNER, "userId": "u", "email": "a@example.org"}
        (folder / "userData.json").write_text(json.dumps({ORG_ID: user}))
        key = {"publicKey": "0x04", "privateKey": SECRET, "createdAt": "2026-11-21T00:00:00Z", "activated": False}
        done = {"accountAddress": self.address, "initCode": "0x", "deferredActionDigest": "0x"}
        keys = [key, key | {"activated": True} | done] if activated else [key]
        (folder / "userApiKey.json").write_text(json.dumps({ORG_ID: keys}))

    def _answer(self, handler, name, body):
        self.asked.append((name, body))
        mode = self.mode if self.only in (None, name) else "ok"
        if mode == "hang":
            self.release.wait(60)
        elif mode in ("drop", "mined, then dropped"):
            if mode == "mined, then dropped":
                self._send(name, body)
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
        elif mode in SAYS:
            _reply(handler, *SAYS[mode])
        elif mode in AFTER_MINING:
            self._send(name, body)
            _reply(handler, *AFTER_MINING[mode])
        else:
            status, content = self._send(name, body)
            _reply(handler, status, json.dumps(content).encode())

    def _send(self, name, body):
        """Status and content, after the transaction was mined."""
        if body["orgId"] != ORG_ID:
            return 404, {"error": "user not found"}
        calls = {
            "register-peer": lambda: (self._contract, "registerPeer(string)", body["peerId"]),
            "submit-reward": lambda: (
                *(self._contract, "submitReward(uint256,uint256,int256,string)"),
                *(body["roundNumber"], body["stageNumber"], body["reward"], body["peerId"]),
            ),
            "submit-winner": lambda: (
                *(self._contract, "submitWinners(uint256,string[],string)"),
                *(body["roundNumber"], body["winners"], body["peerId"]),
            ),
            "guess-answer": lambda: (
                *(self._market, "guessAnswer(uint256,string,uint256,uint256,uint256)"),
                *(body["gameId"], body["peerId"], body["clueId"], body["choiceIdx"], _amount(body["bet"])),
            ),
            "claim-reward": lambda: (self._market, "claimReward(uint256,string)", body["gameId"], body["peerId"]),
        }
        if name not in calls:
            return 404, {"error": "no such page"}
        try:
            receipt = self._client.transact(*calls[name]())
        except Reverted as error:
            return 400, {"error": error.name}
        except LedgerError as error:
            return 500, {"error": str(error)}
        return 200, {"hash": receipt["transactionHash"]}


def _amount(text):
    """As BigInt() reads it in the app; a number would have been rounded before."""
    assert isinstance(text, str)
    assert text.isdigit()
    return int(text)


def _reply(handler, status, body):
    handler.send_response(status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(body)))
    if status == 302:
        handler.send_header("location", "http://127.0.0.1:9/")
    handler.end_headers()
    handler.wfile.write(body)
    handler.wfile.flush()
