"""Commands in processes of their own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent


def executable(path, text):
    """The file of a program, with this in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def spawn(command, **settings):
    """A process in the checkout whose output and errors are one stream of text."""
    one_stream = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, **{"cwd": ROOT, **one_stream, **settings})


def start(arguments):
    command = [sys.executable, "-m", "codezero", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, text=True, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(arguments):
    """What a command comes to."""
    process = start(arguments)
    out, error = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, out, error)


def interrupted(arguments, output):
    """Starts a command, sends it SIGINT when there is something in the file `output`; its exit code and the lines that
    it has said on standard error."""
    process = start(arguments)
    ends = time.monotonic() + 300
    while process.poll() is None and not (output.exists() and output.stat().st_size) and time.monotonic() < ends:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    return process.returncode, said.replace("\r", "\n").splitlines()
