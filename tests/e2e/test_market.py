"""A node that is examined by a judge service and plays the prediction market, on a real chain and a tiny model."""

import os
import signal
import sqlite3
import threading
from contextlib import ExitStack, contextmanager

import pytest

from codezero.identity.names import animal_name
from codezero.ledger import keystore
from tests import tiny_node
from tests.builders import save_tiny
from tests.commands import spawn
from tests.e2e.test_chain import command, status, ticking
from tests.processes import wait_until
from tests.tiny_node import reports
from tests.unit.evaluate.loopback import never, reply, serve
from tests.unit.services.market.arena import Arena

ETHER = 10**18
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Judge:
    """The service's three paths."""

    def __init__(self):
        self.clue = {"game_id": -1, "clue_id": -1, "rounds_remaining": -1}

    def __call__(self, handler, count):
        answers = {
            "/request-question/": {"session_id": f"s{count}", "question": "What is 1 + 1?"},
            "/submit-answer/": {"score": 0.75},
            "/current_clue/": self.clue,
        }
        reply(200, answers[handler.path])(handler, count)

    def show(self, game):
        self.clue = {
            "game_id": game,
            "clue_id": 0,
            "rounds_remaining": 3,
            "clue": "It barks.",
            "choices": ["cat", "dog"],
        }

    def close_game(self):
        self.clue = Judge().clue


@pytest.fixture
def market(chain):
    return Arena(chain).market()


@pytest.fixture
def node(chain, market, tmp_path):
    """The command of a node that takes part in both; more settings may follow."""
    save_tiny(tmp_path / "model")
    address = keystore.save(b"\x07" * 32, tmp_path / "wallet.json", "a long one", scrypt_n=2)
    chain.client().transfer(address, ETHER)

    def arguments(judge_url, *settings):
        return command(
            tmp_path,
            chain.url,
            market.arena.swarm,
            *("judge.enabled=true", f"judge.url={judge_url}", "market.enabled=true"),
            *(f"market.contract_address={market.address}", *settings),
        )

    return arguments


@contextmanager
def running(arguments):
    """The node, which is stopped with Ctrl-C; its output is then in `said`."""
    environment = {**os.environ, "CODEZERO_WALLET_PASSPHRASE": "a long one"}
    process = spawn(arguments, env=environment)
    said = []
    reader = threading.Thread(target=lambda: said.extend(process.stdout), daemon=True)
    reader.start()
    try:
        yield said
        assert process.poll() is None, "".join(said)
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0, "".join(said)
        reader.join(10)
    finally:
        process.kill()


def record(tmp_path):
    path = tmp_path / "logs" / "prg_record.txt"
    return path.read_text().splitlines() if path.exists() else []


def test_a_node_is_examined_bets_and_claims_its_reward_after_a_restart(market, node, tmp_path):
    judge, game = Judge(), market.new_game()
    judge.show(game)
    clock = ticking(market.arena.swarm.tick, every_s=1.0)
    with serve(judge) as server, clock:
        with running(node(server.url, "market.fraction=0.5", "market.max_bet=2.5")) as said:
            wait_until(lambda: record(tmp_path), said=said)
            wait_until(lambda: any(report["judge_score"] == 0.75 for report in reports(tmp_path)), said=said)
        (line,) = record(tmp_path)
        assert line.startswith("Game 0 Round 0: Peer Qm")
        assert " placed bet of 2.50 tokens " in line
        peer_id = tiny_node.peer_id("".join(said))
        assert line.endswith(" on choice - dog")  # as the random weights of the tiny model have it
        assert market.read("choiceTokenBalance", game, peer_id, 1) == 25 * 10**17
        shown = status(tmp_path)
        assert (
            f"market 1 bet of {animal_name(peer_id)} at {market.address} on chain 31337; 0 not confirmed, 1 game"
            in shown
        )
        assert "trouble" not in shown

        judge.close_game()
        market.reveal(game)
        with sqlite3.connect(tmp_path / "state" / "outbox.sqlite") as db:
            db.execute("UPDATE item SET due_at_s = 0 WHERE kind = 'claim'")  # due now, not in a minute
        with running(node(server.url)) as said:
            wait_until(lambda: len(record(tmp_path)) == 2, said=said)
        assert record(tmp_path)[1] == "successfully claimed reward for previous game 0"
        assert market.read("betTokenBalance", peer_id) == 100 * 10**18
    assert {report["market"] for report in reports(tmp_path)} == {""}
    asked = [body for path, body in zip(server.paths, server.bodies, strict=True) if path == "/request-question/"]
    assert {body["user_id"] for body in asked} == {peer_id}


def test_rounds_go_on_without_a_judge_and_say_so(market, node, tmp_path):
    """First it hangs, then it is away."""

    def says(why):
        last = reports(tmp_path)[-1:]
        return last and all(
            last[0][key].startswith(f"the judge service at {server.url} {why}") for key in ("judge", "market")
        )

    with ticking(market.arena.swarm.tick, every_s=1.0), ExitStack() as stack:
        server = stack.enter_context(serve(never))
        with running(node(server.url, "judge.timeout_s=0.5")) as said:
            wait_until(lambda: len(reports(tmp_path)) >= 3 and says("gave no complete reply in 0.5 s"), said=said)
            stack.close()
            wait_until(lambda: says("cannot be asked"), said=said)
            gone = f"| judge service: the judge service at {server.url} cannot be asked"
            wait_until(lambda: gone in "".join(said), said=said)
    url, last = server.url, reports(tmp_path)[-1]
    assert last["judge_score"] is None
    assert last["reward_mean"] is not None
    assert f"| judge service: the judge service at {url} " in "".join(said)
    assert f"trouble the judge service at {url} " in status(tmp_path)
    assert max(sum(report["seconds"].values()) for report in reports(tmp_path)) < 60
