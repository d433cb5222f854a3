"""The processes that a process has started, what became of those that a test knows by their id, waiting for what
another process or thread does, and a process that has a folder."""

import multiprocessing
import time
from contextlib import contextmanager, suppress

import psutil

from codezero.runtime.state import locked


def programs(pid):
    """The programs that a process has started, at any depth: psutil.Process, arguments and environment of each.

    Left out are what has just ended, and a child that has yet to execute its program: it still shows the arguments of
    the process, and all of the environment that the process was started with.
    """
    process, found = psutil.Process(pid), []
    own = process.cmdline()
    for child in process.children(recursive=True):
        with suppress(psutil.Error):
            arguments = child.cmdline()  # read first, so that the environment is this program's
            if arguments and arguments != own:
                found.append((child, arguments, child.environ()))
    return found


def is_alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition, limit_s=300.0, said=()):
    """What the condition returns when it first holds; else an error with the lines that were said until then."""
    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < deadline, "\n".join(["it did not come about in time", *said])
        time.sleep(0.02)
    return found


def wait_until_gone(pids):
    wait_until(lambda: not any(map(is_alive, pids)), said=[f"one of {pids} is still there"])


def _hold(folder, name, is_held, release):
    with locked(folder, what="folder", holder=name, setting="x"):
        is_held.set()
        release.wait(600)


@contextmanager
def held(folder, name="node"):
    """The id of a process that has locked a folder as its node, and is killed in the end."""
    context = multiprocessing.get_context("spawn")
    is_held, release = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(folder, name, is_held, release))
    process.start()
    assert is_held.wait(300)
    try:
        yield process.pid
    finally:
        process.kill()
        process.join()
