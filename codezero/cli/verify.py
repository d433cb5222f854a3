"""`codezero verify`: trains a model to write test cases that tell right solutions from wrong ones."""

from __future__ import annotations

import argparse

from codezero.cli.options import Commands, add_command, add_stop_with_parent, config_in_batches, heavy_imports

_EXAMPLES = """\
examples:
  codezero verify                                  until Ctrl-C, on the configured tasks
  codezero verify tasks=mbpp tasks.mbpp.path=mbpp.jsonl --batches 50
  codezero verify verifier.num_generations=4 verifier.batch_size=1
  codezero verify verifier.train_solver=true       a solver learns too, also from second attempts at refused solutions
  codezero eval --dataset mbpp --best-of 8 --verify --writer state --temperature 0.8
                                                   choose one of 8 solutions by the trained model's test cases
  codezero eval --dataset mbpp --checkpoint state/verifier
                                                   measure the solver that learnt beside it

It needs tasks with a reference solution (MBPP, the built-in ones) and no swarm. No code is executed.
"""


def add_commands(commands: Commands) -> None:
    about = (
        "Runs a test writer: the model writes solutions, then two test cases about one of them, and learns to write "
        "cases that the reference solution passes and wrong solutions fail."
    )
    text = "train a model to write test cases"
    verify = add_command(commands, "verify", _verify, text, about=about, examples=_EXAMPLES)
    verify.add_argument("--batches", type=int, metavar="N", help="stop after N batches (same as verifier.batches=N)")
    verify.add_argument("settings", nargs="*", metavar="key=value", help="settings over those of configs/node.yaml")
    add_stop_with_parent(verify)


def _verify(options: argparse.Namespace) -> int:
    config = config_in_batches(options, "verifier")
    with heavy_imports():
        from codezero.verifier.node import run_verifier

    return run_verifier(config)
