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
