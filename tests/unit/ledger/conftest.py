import time
from types import SimpleNamespace

import pytest

from codezero.devchain.anvil import find_anvil
from tests import chains
from tests.chain import LiveChain


@pytest.fixture(scope="session")
def anvil():
    with chains.on_anvil() as running:
        yield running


@pytest.fixture(scope="session")
def chain(request):
    """A real chain: anvil where it is installed, else py-evm, which takes three times as much of the processor."""
    engine = getattr(request, "param", "anvil" if find_anvil() else "py-evm")
    return LiveChain(request.getfixturevalue("dev_chain" if engine == "py-evm" else "anvil"))


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
