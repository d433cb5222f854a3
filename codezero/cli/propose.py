"""`codezero propose`: writes problems for a swarm, or into a file."""

from __future__ import annotations

import argparse

from codezero.cli.options import Commands, add_command, add_stop_with_parent, config_in_batches, heavy_imports, path

_EXAMPLES = """\
examples:
  codezero propose swarm=invite.yaml               write problems for the swarm that you were invited to
  codezero propose --batches 5 --out problems.jsonl
  codezero propose swarm=invite.yaml proposer.train=true
  codezero propose proposer.writer=state           with tests by what `codezero verify` has trained
  codezero propose swarm=invite.yaml proposer.url=http://127.0.0.1:8000/v1 proposer.model=Qwen/Qwen3-4B

A line of FILE is a JSON object with id, source, difficulty, question, tests, model and raw; lines are appended.
"""


def add_commands(commands: Commands) -> None:
    about = (
        "Runs a proposer: write problems with unit tests, check and publish them, and follow the solvers' success with "
        "the level."
    )
    text = "write problems for a swarm to solve"
    propose = add_command(commands, "propose", _propose, text, about=about, examples=_EXAMPLES)
    propose.add_argument("--batches", type=int, metavar="N", help="stop after N batches (same as proposer.batches=N)")
    propose.add_argument("--out", type=path, metavar="FILE", help="also append every valid problem to this .jsonl file")
    propose.add_argument("settings", nargs="*", metavar="key=value", help="settings over those of configs/node.yaml")
    add_stop_with_parent(propose)


def _propose(options: argparse.Namespace) -> int:
    config = config_in_batches(options, "proposer")
    with heavy_imports():
        from codezero.proposer.node import run_proposer

    return run_proposer(config, options.out)
