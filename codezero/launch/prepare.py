"""Prepares the models that the nodes of one machine share, in a separate process.

`python -m codezero.launch.prepare NODES PROPOSERS VERIFIERS key=value ...` imports torch, whose memory only the end of
its process frees; the launcher runs for days and must not keep it. The last line of its output is the answer in JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence

from codezero.config.load import load_config
from codezero.errors import CodezeroError, ModelError
from codezero.runtime.logs import quiet_libraries
from codezero.runtime.stop import stop_with_parent


def prepare(
    settings: Sequence[str], num_nodes: int, num_proposers: int, num_verifiers: int, environment: Mapping[str, str]
) -> tuple[int, int]:
    """Prepares the models that nodes with these settings load; returns the bytes of memory that a node may plan with,
    and those of a proposer or test writer, where so many share a machine, or the GPU that the environment names.

    Raises ModelError: weights are not available, or the process was killed.
    """
    counts = map(str, (num_nodes, num_proposers, num_verifiers))
    command = [sys.executable, "-m", "codezero.launch.prepare", *counts, *settings]
    # It has its own session, since Ctrl-C is for the launcher, and stops when the pipe to its standard input closes.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            lines = process.stdout.read().splitlines()
        except BaseException:
            process.kill()
            raise
    if process.returncode or not lines:
        raise ModelError(f"preparing the models ended with exit code {process.returncode}: see above, or free memory")
    answer = json.loads(lines[-1])
    if "error" in answer:
        raise ModelError(answer["error"])
    node, other = answer["bytes"]
    return node, other


def main() -> None:
    stop_with_parent()
    quiet_libraries()
    from codezero.launch.weights import prepare_for

    try:
        nodes, proposers, verifiers = map(int, sys.argv[1:4])
        answer: dict[str, object] = {"bytes": prepare_for(load_config(sys.argv[4:]), nodes, proposers, verifiers)}
    except CodezeroError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
