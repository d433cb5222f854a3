"""Jobs that do what hostile text makes a flawed parser do, and others that show where they run."""

import ctypes
import gc
import os
import resource
import signal
import socket
import sys
import time

from msgspec import Raw, Struct

from codezero.workers.job import Job, JobReply, framed


class Told(Struct):
    words: dict[str, str]


ECHO = Job("echo", str, str)
PID = Job("pid", str, int)
ROOM = Job("room", str, Told)
KILL = Job("kill", str, str)
LATE_BOMB = Job("late_bomb", str, str)


def echo(text):
    return text


def pid(_):
    return os.getpid()


def room(_):
    """What a worker has, and what it may do."""
    tried = {}
    for name, attempt in (
        ("open", lambda: os.open(__file__, os.O_RDONLY)),
        ("socket", lambda: socket.create_connection(("127.0.0.1", 9), timeout=1)),
        ("write", lambda: os.write(os.open("/tmp/x", os.O_CREAT | os.O_WRONLY), b"x")),
    ):
        try:
            attempt()
            tried[name] = "possible"
        except OSError as error:
            tried[name] = type(error).__name__
    return Told(
        words={
            **tried,
            "heavy": " ".join(sorted({"torch", "hivemind", "cryptography", "transformers"} & set(sys.modules))),
            "environment": " ".join(sorted(os.environ)),
            "folder": os.getcwd(),
            "hash": str(hash("a text")),
            "memory": str(resource.getrlimit(resource.RLIMIT_AS)[0]),
            "files": str(resource.getrlimit(resource.RLIMIT_NOFILE)),
            "core": str(resource.getrlimit(resource.RLIMIT_CORE)[0]),
        }
    )


def kill(how):
    return _KILLERS[how]()


def _signal():
    os.kill(os.getpid(), signal.SIGSEGV)


def _deep_in_c():
    sum(range(10**18))


def _null():
    ctypes.string_at(0)


def _from_outside():
    os.kill(os.getpid(), signal.SIGKILL)


def _sleep():
    time.sleep(600)


def _memory():
    return [bytearray(1 << 20) for _ in range(1 << 14)]


def _fault():
    raise KeyError("\x1b[2J a fault of ours \ud800")


def _send(data):
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(4, rest) :]


def _flood():
    _send((1 << 31).to_bytes(4, "big"))
    while True:
        _send(b"x" * (1 << 20))


def _two():
    _send(framed(JobReply(answer=Raw(b"\xa1a"))) * 2)
    time.sleep(600)


def _half():
    _send(framed(JobReply(answer=Raw(b"\xa1a")))[:5])
    os._exit(0)


def _closed():
    os.close(4)
    time.sleep(600)


def _noise():
    _send((3).to_bytes(4, "big") + b"\xc1\xc1\xc1")
    time.sleep(600)


def _nested():
    _send((100_000).to_bytes(4, "big") + b"\x91" * 100_000)
    time.sleep(600)


def _wrong_type():
    return {"not": "text"}


_KILLERS = {
    name[1:]: function
    for name, function in list(globals().items())
    if name.startswith("_") and callable(function) and not name.startswith(("__", "_send"))
}


def late_bomb(_):
    """Leaves something behind that ends whoever collects it."""

    class Bomb:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGSEGV)

    bomb = Bomb()
    bomb.itself = bomb
    return "harmless" if gc.isenabled() else ""


JOBS = {ECHO: echo, PID: pid, ROOM: room, KILL: kill, LATE_BOMB: late_bomb}
