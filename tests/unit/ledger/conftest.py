import pytest

from tests.chain import running_chain


@pytest.fixture(scope="session")
def chain():
    with running_chain() as chain:
        yield chain


@pytest.fixture
def deployed(chain):
    """A coordinator of the test's own."""
    return chain.deploy()
