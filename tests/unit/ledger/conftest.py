import pytest

from tests.chain import LiveChain


@pytest.fixture(scope="session")
def chain(dev_chain):
    return LiveChain(dev_chain)


@pytest.fixture
def deployed(chain):
    """A coordinator of the test's own."""
    return chain.deploy()
