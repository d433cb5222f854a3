import pytest


@pytest.fixture
def chain():
    """A chain of the test's own."""
    from tests import chains

    with chains.running() as running:
        yield running
