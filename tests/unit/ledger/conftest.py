import time
from types import SimpleNamespace

import pytest

from tests import chains
from tests.chain import LiveChain


@pytest.fixture(scope="session")
def anvil():
    with chains.on_anvil() as running:
        yield running


@pytest.fixture(scope="session", params=chains.ENGINES)
def chain(request):
    """A real chain of each kind that is installed."""
    engine = "dev_chain" if request.param == "py-evm" else "anvil"
    return LiveChain(request.getfixturevalue(engine))


@pytest.fixture
def deployed(chain):
    """A coordinator of the test's own."""
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
