import pytest

from tests.unit.market.arena import Arena


@pytest.fixture(scope="session")
def arena(dev_chain):
    return Arena(dev_chain)


@pytest.fixture
def market(arena):
    """A market contract of the test's own: its first game is game 0."""
    return arena.market()
