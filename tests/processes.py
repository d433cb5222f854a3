"""The processes that a process has started, what became of those that a test knows by their id, and waiting for what
another process or thread does."""

import time
from contextlib import suppress

import psutil


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
