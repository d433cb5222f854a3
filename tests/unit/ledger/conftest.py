import time
from types import SimpleNamespace

import pytest

from tests.chain import LiveChain


@pytest.fixture(scope="session")
def chain(dev_chain):
    return LiveChain(dev_chain)


@pytest.fixture
def deployed(chain, monkeypatch):
    """A coordinator of the test's own."""
    chain.mine_at_once(monkeypatch)
    return chain.deploy()


@pytest.fixture
def clock(monkeypatch):
    """Time that goes on as ever, and can be put forward by `skip`."""
    skipped_s, wall, monotonic = 0.0, time.time, time.monotonic

    def skip(seconds):
        nonlocal skipped_s
        skipped_s += seconds

    monkeypatch.setattr(time, "time", lambda: wall() + skipped_s)
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + skipped_s)
    return SimpleNamespace(skip=skip, now_s=time.time)
