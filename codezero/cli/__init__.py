"""The command line. Arguments are parsed first and heavy modules imported after, so that --help is instant."""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
import traceback
from collections.abc import Sequence

from codezero import __version__
from codezero.cli import (
    chain,
    dashboard,
    doctor,
    evaluation,
    health,
    identity,
    leaderboard,
    models,
    propose,
    report,
    rollout,
    score,
    start,
    status,
    swarm,
    verify,
    wallet,
)
from codezero.cli.options import INTERRUPTED, add_command, add_stop_with_parent, heavy_imports
from codezero.config import checkout
from codezero.errors import DISK_FULL, OUTAGE, CodezeroError, is_outage
from codezero.runtime.console import Console, printable
from codezero.runtime.logs import log_end
from codezero.runtime.stop import stop_with_parent

_STDOUT = 1
BUG = 70
"""The exit code EX_SOFTWARE of sysexits.h."""
UNREAD = 128 + signal.SIGPIPE
"""The exit code a shell gives to a program whose output nobody reads any more."""
_RUN_EXAMPLES = """\
examples:
  codezero run preset=local                        train alone: no hub, no account, no chain
  codezero run preset=faithful                     the defaults of the public CodeZero node
  codezero run model.name=/path/to/model rounds=5  another model, five rounds
  codezero run tasks.mbpp.weight=1 tasks.mbpp.path=mbpp.jsonl
  codezero run swarm=invite.yaml                   join a swarm that you were invited to
  codezero run --show-config                       every setting, explained, with its value
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0 if done, 1 for an error printed in one line, 70 (`BUG`) for any
    other, printed with its traceback, 130 (`INTERRUPTED`) if the user stopped it before, 141 (`UNREAD`) if what read
    its output has ended. A command that runs until it is stopped returns 0 then, and 75 (`OUTAGE`) for an error that
    may pass by itself."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started this, as with `>&-`
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    # argparse takes one run of positionals only; settings may also follow an option, as in --rounds 3 key=value.
    if any(argument.startswith("-") or "settings" not in options for argument in rest):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.settings += rest
    if getattr(options, "stop_with_parent", False):
        stop_with_parent()
    try:
        code = int(options.command(options) or 0)
        sys.stdout.flush()
        return code
    except CodezeroError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        log_end(error)
        return OUTAGE if is_outage(error) and "stop_with_parent" in options else 1
    except KeyboardInterrupt:
        return 0 if "stop_with_parent" in options else INTERRUPTED
    except Exception as error:  # the outermost boundary: launchers restart after BUG, but 1 says it would fail again
        if isinstance(error, BrokenPipeError) and _output_is_unread():
            _drop_output()
            return UNREAD
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            _drop_output()  # it may be what the disk does not take
            print(f"error: {error.strerror}: free space", file=sys.stderr)
            log_end(error)
            return OUTAGE if "stop_with_parent" in options else 1
        print("\n".join(map(printable, traceback.format_exc().splitlines())), file=sys.stderr)
        log_end(error)
        return BUG


def _output_is_unread() -> bool:
    """Returns whether what read the output has ended, as `head` does after ten lines."""
    output = select.poll()
    output.register(_STDOUT, 0)  # its errors are told whatever is asked for
    return bool(output.poll(0))


def _drop_output() -> None:
    """Drops what was not written yet, which Python would else try again at exit, with an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="codezero", description="A node of a swarm in which language models learn to code."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and, of a checkout, the commit")
    commands = parser.add_subparsers(metavar="command", required=True)

    about = "Runs a node: draw tasks, solve, score, learn, settle, and again."
    run = add_command(commands, "run", _run, "run a node until it is stopped", about=about, examples=_RUN_EXAMPLES)
    run.add_argument("--rounds", type=int, metavar="N", help="stop after N rounds (same as rounds=N)")
    run.add_argument("--show-config", action="store_true", help="print the resulting configuration and exit")
    run.add_argument("settings", nargs="*", metavar="key=value", help="settings over those of configs/node.yaml")
    add_stop_with_parent(run)
    groups = (start, swarm, propose, verify, rollout, status, leaderboard, dashboard, doctor, health, report, score)
    for group in (*groups, evaluation, models, identity, wallet, chain):
        group.add_commands(commands)
    return parser


class _Version(argparse.Action):
    """Prints the version; argparse's own action would ask git for the commit at every start."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"codezero {checkout.version()}")
        parser.exit()


def _run(options: argparse.Namespace) -> int:
    from codezero.config.load import explain, load_config

    rounds = [] if options.rounds is None else [f"rounds={options.rounds}"]
    config = load_config([*options.settings, *rounds])
    if options.show_config:
        print(explain(config), end="")
        return 0

    Console().line(f"codezero {__version__}")  # printed first, since the imports below take seconds
    with heavy_imports():
        from codezero.node import run_node

    return run_node(config)
