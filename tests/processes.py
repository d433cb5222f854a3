"""What became of processes that a test knows by their id."""

import time

import psutil


def is_alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until_gone(pids):
    deadline = time.monotonic() + 30
    while alive := [pid for pid in pids if is_alive(pid)]:
        assert time.monotonic() < deadline, f"still there: {alive}"
        time.sleep(0.05)
