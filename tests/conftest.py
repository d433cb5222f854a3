import logging

import pytest


@pytest.fixture(scope="session")
def dev_chain(tmp_path_factory):
    """A `tests.chains.DevChain` that all tests share: deploy a coordinator of your own, use peer ids of your own."""
    from tests import chains

    with chains.running(tmp_path_factory.mktemp("chain")) as chain:
        yield chain


@pytest.fixture
def restored_logging():
    """For tests that set up logging in this process: what comes after finds it as it was."""
    root, own = logging.getLogger(), logging.getLogger("codezero")
    before = (root.handlers[:], root.level, own.handlers[:], own.level)
    yield
    root.handlers, own.handlers = before[0], before[2]
    root.setLevel(before[1])
    own.setLevel(before[3])
    logging.captureWarnings(False)
