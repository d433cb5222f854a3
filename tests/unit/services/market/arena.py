"""A market on the chain of the tests, the peers that play it, a judge on loopback, and a policy with a favourite."""

import contextlib
import itertools
import json
import sqlite3
from fractions import Fraction

import pytest
from eth_abi.abi import encode
from eth_account import Account as EthAccount
from eth_utils.crypto import keccak

from codezero.ledger.account import ETHER, Account
from codezero.ledger.items import OPEN, ItemState, Kind, LedgerScope
from codezero.ledger.jsonrpc import JsonRpc
from codezero.ledger.location import OUTBOX
from codezero.ledger.modal import app_account
from codezero.ledger.reading import read_pending
from codezero.ledger.transactions import Journal
from codezero.services.judge.client import JudgeService
from codezero.services.market.book import Book
from codezero.services.market.contract import open_market
from codezero.services.market.player import RECORD, Player
from codezero.services.market.stakes import Stakes
from tests.chain import LiveChain, new_key
from tests.chains import CHAIN_ID
from tests.sign_in import ORG_ID, SignInApp
from tests.unit.evaluate.loopback import reply, serve

SALT = b"s" * 32
COIN = 10**18
BOTH = pytest.mark.parametrize("market", ["wallet", "modal"], indirect=True)
"""For a test that every backend has to pass."""
_PEERS = itertools.count(1)


class Arena:
    def __init__(self, dev_chain):
        self.chain = LiveChain(dev_chain)
        self.swarm = self.chain.deploy()

    def market(self, stake=100 * COIN, apps=None):
        """`apps`: an ExitStack, for peers that play through a sign-in app of their own."""
        address = self.chain.client.deploy("PredictionMarket", self.swarm.address, self.chain.owner, stake)
        return Market(self, address, apps)


class Market:
    def __init__(self, arena, address, apps=None):
        self.arena, self.address, self.apps = arena, address, apps
        self._client = arena.chain.client
        self._contract = self._client.contract("PredictionMarket", address)
        self._seen = arena.chain.seen("PredictionMarket", address)

    def new_game(self, rounds=3, choices=2, answer=1):
        number = self.read("gameCount")
        root = keccak(encode(["uint256", "bytes32"], [answer, SALT]))
        self._send("createNewGame(uint256,uint256,bytes32)", rounds, choices, root)
        return number

    def next_round(self, game):
        self._send("incrementRound(uint256)", game)

    def reveal(self, game, answer=1):
        self._send("revealAnswer(uint256,uint256,bytes32)", game, answer, SALT)

    def read(self, view, *arguments):
        return self._seen.functions[view](*arguments).call()

    def peer(self, tmp_path, registered=True, wei=ETHER):
        return Peer(self, tmp_path, registered, wei)

    def _send(self, signature, *arguments):
        self._client.transact(self._contract, signature, *arguments)


class Peer:
    """With an account of its own, and a state folder that outlives the players it makes."""

    def __init__(self, market, folder, registered, wei):
        self.market, self.folder, self.peer_id = market, folder, f"Qm-player-{next(_PEERS)}"
        self.key = new_key()
        signer = EthAccount.from_key(self.key)
        self.address, self.app = signer.address, None
        if market.apps is not None:
            app = SignInApp(market.arena.chain.url, market.arena.swarm.address, signer, market.address)
            self.app = market.apps.enter_context(app.serving())
        self.contract = self.connect()
        if wei:
            market.arena.chain.fund(self.address, wei)
        if registered:
            self.register()

    def register(self):
        swarm = self.market.arena.swarm
        account = Account(self.key, swarm.rpc())
        account.send(swarm.contract.call("registerPeer(string)", self.peer_id), Journal(store=lambda _: None))

    @property
    def wei(self):
        """What the account holds."""
        return self.market.arena.chain.web3.eth.get_balance(self.address)

    def connect(self, url=None, max_fee_gwei=100.0):
        """The market's contract, as this peer's account uses it."""
        url = url or self.market.arena.chain.url
        if self.app is None:
            rpc = self.market.arena.swarm.rpc(JsonRpc(url))
            self.sender = Account(self.key, rpc, max_fee_gwei=max_fee_gwei)
        else:
            user = {"org_id": ORG_ID, "account_address": self.address, "login_dir": self.folder}
            self.sender = app_account(proxy_url=self.app.url, **user)
        address = self.market.address
        return open_market(
            rpc_url=url, chain_id=CHAIN_ID, contract_address=address, sender=self.sender, peer_id=self.peer_id
        )

    def book(self):
        """As a node that starts now finds it."""
        scope = LedgerScope(chain_id=CHAIN_ID, contract=self.market.address, peer_id=self.peer_id)
        return Book(self.folder / OUTBOX, scope)

    def player(self, judge, policy=None, contract=None, stakes=None):
        return Player(
            judge.service(),
            contract or self.contract,
            policy or Policy(),
            self.book(),
            stakes or Stakes(fraction=Fraction(1, 4)),
            lambda: None,
            peer_id=self.peer_id,
            log_dir=self.folder / "logs",
        )

    @property
    def bets(self):
        return self._items(Kind.BET)

    @property
    def claims(self):
        return self._items(Kind.CLAIM)

    @property
    def unclaimed(self):
        """The games that wait for their reward."""
        return [item.round_id.number for item in self.claims if item.state in OPEN]

    def amounts(self):
        return [self.book().bet(item).amount for item in self.bets]

    def change(self, statement, *values):
        """Does something to the outbox."""
        with sqlite3.connect(self.folder / OUTBOX) as db:
            db.execute(statement, values)

    def _items(self, kind):
        path = self.folder / OUTBOX
        found = read_pending(path).items if path.exists() else []
        return [
            item
            for item in found
            if item.kind is kind and item.scope.contract == self.market.address and item.scope.peer_id == self.peer_id
        ]

    @property
    def balance(self):
        return self.market.read("betTokenBalance", self.peer_id)

    @property
    def nonce(self):
        """Transactions of the account that were mined; the registration is one."""
        return self.market.arena.chain.web3.eth.get_transaction_count(self.address)

    @property
    def lines(self):
        path = self.folder / "logs" / RECORD
        return path.read_text().splitlines() if path.exists() else []


class Judge:
    """A server that shows `clue`, a dict to be sent or a behaviour of `loopback`."""

    def __init__(self, server):
        self.server, self.clue = server, {}

    def show(self, game, clue=0, rounds_remaining=3, choices=("a cat", "a dog"), text="It barks."):
        self.clue = {
            "game_id": game,
            "clue_id": clue,
            "rounds_remaining": rounds_remaining,
            "clue": text,
            "choices": list(choices),
        }

    def close_game(self):
        self.clue = {"game_id": -1, "clue_id": -1, "rounds_remaining": -1, "clue": None, "choices": None}

    def service(self):
        return JudgeService(self.server.url, timeout_s=5.0)


@contextlib.contextmanager
def judging():
    def behave(handler, count):
        clue = judge.clue
        (clue if callable(clue) else reply(200, json.dumps(clue).encode()))(handler, count)

    with serve(behave) as server:
        judge = Judge(server)
        judge.close_game()
        yield judge


def tick(player, times=3):
    """Looks of the player and of the ledger's thread, in turns; the player's wait after its last."""
    for _ in range(times):
        wait_s = player.tick()
        player.delivery.deliver()
    return wait_s


def claim_now(peer):
    """Has every claim that is waiting be due."""
    peer.change("UPDATE item SET due_at_s = 0 WHERE kind = 'claim'")


def states(peer):
    """Of each bet: placed, open, unknown, or why it was dropped."""
    names = {ItemState.DONE: "placed", ItemState.UNKNOWN: "unknown"}
    return ["open" if bet.state in OPEN else names.get(bet.state, bet.note) for bet in peer.bets]


def raises(error):
    def fails(*_):
        raise error

    return fails


class Policy:
    """Finds each token of its favourite choice likelier than those of the others."""

    def __init__(self, favourite="a dog"):
        self.favourite, self.asked = favourite, []

    def token_logprobs(self, messages, opening, completions):
        self.asked.append((messages, opening, tuple(completions)))
        return [[-0.1 if text.startswith(self.favourite) else -2.0] * len(text.split()) for text in completions]
