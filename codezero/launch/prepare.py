"""Prepares the models that the nodes of one machine share, in a separate process.

`python -m codezero.launch.prepare CHOICES key=value ...` imports torch, whose memory only the end of its process frees;
the launcher runs for days and must not keep it. The choices are a JSON list of `Programs`. The last line of its output
is the answer, a `MemoryShare` or an error in JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from codezero.config.load import load_config
from codezero.errors import CodezeroError, ModelError
from codezero.launch.shared_machine import MemoryShare, Programs
from codezero.runtime.logs import quiet_libraries
from codezero.runtime.stop import stop_with_parent


def prepare(settings: Sequence[str], choices: Sequence[Programs], environment: Mapping[str, str]) -> MemoryShare:
    """Prepares the models that programs with these settings load; returns the first of the choices that the memory of
    this machine, or of the GPU that the environment names, holds, and how it is shared.

    Raises ModelError: weights are not available, or the process was killed.
    """
    asked = msgspec.json.encode(choices).decode()
    command = [sys.executable, "-m", "codezero.launch.prepare", asked, *settings]
    # It has its own session, since Ctrl-C is for the launcher, and stops when the pipe to its standard input closes.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            lines = process.stdout.read().splitlines()
        except BaseException:
            with suppress(ProcessLookupError, PermissionError):  # it has just ended
                os.killpg(process.pid, signal.SIGKILL)  # also a pip that fetches weights
            raise
    if process.returncode or not lines:
        raise ModelError(f"preparing the models ended with exit code {process.returncode}: see above, or free memory")
    answer = json.loads(lines[-1])
    if "error" in answer:
        raise ModelError(answer["error"])
    return msgspec.convert(answer, MemoryShare)


def main() -> None:
    stop_with_parent()
    quiet_libraries()
    from codezero.launch.weights import prepare_for

    try:
        choices = msgspec.json.decode(sys.argv[1], type=list[Programs])
        answer = msgspec.to_builtins(prepare_for(load_config(sys.argv[2:]), choices))
    except CodezeroError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
