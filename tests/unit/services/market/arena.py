"""A market on the chain of the tests, the peers that play it, a judge on loopback, and a policy with a favourite."""

import contextlib
import itertools
import json

import pytest
from eth_abi.abi import encode
from eth_account import Account as EthAccount
from eth_utils.crypto import keccak

from codezero.ledger.account import ETHER
from codezero.ledger.items import LedgerScope
from codezero.ledger.transactions import Journal
from codezero.services.judge.client import JudgeService
from codezero.services.market import modal, wallet
from codezero.services.market.book import Book
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
        return self._contract.functions[view](*arguments).call()

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
        self.backend = self.connect()
        if wei:
            market.arena.chain.fund(self.address, wei)
        if registered:
            self.register()

    def register(self):
        swarm = self.market.arena.swarm
        account = wallet.Account(self.key, swarm.rpc())
        account.send(swarm.contract.call("registerPeer(string)", self.peer_id), Journal(store=lambda _: None))

    @property
    def wei(self):
        """What the account holds."""
        return self.market._client.web3.eth.get_balance(self.address)

    def connect(self, url=None, max_fee_gwei=100.0, timeout_s=5.0):
        where = {
            "rpc_url": url or self.market.arena.chain.url,
            "chain_id": CHAIN_ID,
            "contract_address": self.market.address,
            "peer_id": self.peer_id,
        }
        if self.app is None:
            return wallet.connect(key=self.key, max_fee_gwei=max_fee_gwei, **where)
        return modal.connect(
            proxy_url=self.app.url,
            org_id=ORG_ID,
            account_address=self.address,
            login_dir=self.folder,
            timeout_s=timeout_s,
            **where,
        )

    def book(self):
        """As a node that starts now finds it."""
        return Book(self.folder, LedgerScope(chain_id=CHAIN_ID, contract=self.market.address, peer_id=self.peer_id))

    def player(self, judge, policy=None, backend=None, stakes=None, **settings):
        return Player(
            judge.service(),
            backend or self.backend,
            policy or Policy(),
            self.book(),
            stakes or Stakes(),
            peer_id=self.peer_id,
            log_dir=self.folder / "logs",
            **settings,
        )

    @property
    def balance(self):
        return self.market.read("betTokenBalance", self.peer_id)

    @property
    def nonce(self):
        """Transactions of the account that were mined; the registration is one."""
        return self.market._client.web3.eth.get_transaction_count(self.address)

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
    """Looks of the player, one after the other; the wait after the last."""
    return [player.tick() for _ in range(times)][-1]


def claim_now(peer):
    """Has every claim that is waiting be due."""
    book = peer.book()
    for claim in book.unclaimed:
        book.put_claim(type(claim)(game=claim.game, tries=claim.tries, sent=claim.sent))


def states(peer):
    return [bet.state for bet in peer.book().bets]


class Policy:
    """Finds each token of its favourite choice likelier than those of the others."""

    def __init__(self, favourite="a dog"):
        self.favourite, self.asked = favourite, []

    def token_logprobs(self, messages, opening, completions):
        self.asked.append((messages, opening, tuple(completions)))
        return [[-0.1 if text.startswith(self.favourite) else -2.0] * len(text.split()) for text in completions]
