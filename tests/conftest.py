import pytest


@pytest.fixture(scope="session")
def dev_chain(tmp_path_factory):
    """A `tests.chains.DevChain` that all tests share: deploy a coordinator of your own, use peer ids of your own."""
    from tests import chains

    with chains.running(tmp_path_factory.mktemp("chain")) as chain:
        yield chain
