from contextlib import ExitStack

import pytest

from codezero.ledger import delivery
from tests.unit.ledger.hostile_rpc import HostileRpc
from tests.unit.services.market.arena import Arena, judging


@pytest.fixture(scope="session")
def arena(dev_chain):
    return Arena(dev_chain)


@pytest.fixture
def market(request, arena, monkeypatch):
    """A market contract of the test's own: its first game is game 0. Its peers play with keys of their own, or, where
    the test asks for "modal", each through a sign-in app."""
    monkeypatch.setattr(delivery, "LOOK_AGAIN_S", 0.0)
    arena.chain.mine_at_once(monkeypatch)
    with ExitStack() as apps:
        yield arena.market(apps=apps if getattr(request, "param", "wallet") == "modal" else None)


@pytest.fixture
def judge():
    with judging() as judge:
        yield judge


@pytest.fixture
def peer(market, tmp_path, judge):
    """A peer of the market, whose judge shows the first clue of game 0."""
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    return peer


@pytest.fixture
def rpc(arena):
    with HostileRpc(behind=arena.chain.url).serving() as rpc:
        yield rpc
