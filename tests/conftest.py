import asyncio
import gc
import inspect
import logging
import os
import signal
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

from codezero.ledger.eth_imports import recursion_limit_kept

with recursion_limit_kept():
    import py_ecc  # noqa: F401  # raises the limit when it is first imported, and hostile tests nest more deeply

# A shell's background job ignores Ctrl-C; so would the processes that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("busy", deadline=None)  # a busy machine is no failure
settings.load_profile("busy")
# Where a machine permits no sandbox the tests run their own harmless code without one; hostile code is not run there
# (tests/unit/sandbox).
os.environ["CODEZERO_UNCONFINED"] = "1"
# Where ./run_tests.sh installs anvil, for a pytest without it too.
os.environ["PATH"] += os.pathsep + str(Path(__file__).parent / "anvil" / "node_modules" / ".bin")
PARTS_SHOWN = 20
gc.disable()  # until all tests are imported, which stay: each search among them and torch takes half a second


def pytest_pyfunc_call(pyfuncitem):
    """Runs a test that is a coroutine function in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


def pytest_collection_modifyitems(items):
    """Whole nodes and networks first: they take longest, and among several workers none is left with one at the end."""
    items.sort(key=lambda item: item.nodeid.startswith("tests/unit/"))


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter):
    """How long the tests of the slowest parts took: each a folder of unit tests, or a file of others."""
    totals = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.nodeid.partition("::")[0].removesuffix(".py")
                totals["/".join(file.split("/")[:3])] += report.duration
    for part, seconds in totals.most_common(PARTS_SHOWN):
        terminalreporter.write_line(f"{part}: {seconds:.0f} s")


@pytest.fixture(scope="session")
def dev_chain():
    """A `tests.chains.DevChain` that all tests share: deploy a coordinator of your own, use peer ids of your own."""
    from tests import chains

    with chains.running() as chain:
        yield chain


@pytest.fixture(scope="session")
def workers():
    """The worker processes of a node, one of them, that all tests share."""
    from codezero.workers import Workers

    with Workers(1) as started:
        yield started


@pytest.fixture
def utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


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


@pytest.fixture
def restored_process():
    """For tests that set up logging or run a node in this process: what comes after finds it as it was."""
    import torch

    loggers = [logging.getLogger(name) for name in (None, "codezero", "transformers")]
    before = [(logger, logger.handlers[:], logger.level) for logger in loggers]
    variables, threads = dict(os.environ), torch.get_num_threads()
    yield
    for logger, handlers, level in before:
        logger.handlers = handlers
        logger.setLevel(level)
    logging.captureWarnings(False)
    os.environ.clear()
    os.environ.update(variables)
    torch.set_num_threads(threads)
