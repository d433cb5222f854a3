"""`codezero score`: scores stored solutions with the evaluator of a round."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from codezero.cli.options import INTERRUPTED, Commands, add_command, heavy_imports
from codezero.runtime.amounts import counted
from codezero.runtime.console import Console

_EXAMPLES = """\
each input line is a JSON object with question, tests (text or a list of texts), source (mbpp, code_contests, builtin,
proposer), solution (the whole answer, fence included), and optionally id, group, finish (stop, length) and reference
(a right solution, of which tests with fresh inputs are drawn; the first one given for a problem counts); lines of one
group should follow each other. Each output line has id, group, outcome, p_correct, rules, reasons, cases, fresh
(tests drawn, passed, failed while another solution passes them, doubtful where none does, unknown), parts and reward,
or error.

The setting `seed` draws the fresh tests, so every run gives the same lines.
A stopped run continues when it is started again with the same input and settings.

examples:
  codezero score solutions.jsonl --out scored.jsonl
  codezero score solutions.jsonl --out scored.jsonl evaluator=faithful reward=faithful
  codezero score solutions.jsonl --out scored.jsonl evaluator.dry_run=off evaluator.model=Qwen2.5-Coder-0.5B-Instruct
"""


def add_commands(commands: Commands) -> None:
    about = "Scores stored solutions with the evaluator and the reward of a round. Their code is not executed."
    text = "score stored solutions as a round would"
    score = add_command(commands, "score", _score, text, about=about, examples=_EXAMPLES)
    score.add_argument("input", metavar="IN.jsonl", help="stored solutions")
    score.add_argument("--out", required=True, metavar="OUT.jsonl", help="where scored lines go")
    score.add_argument("settings", nargs="*", metavar="key=value", help="settings as for `codezero run`")


def _score(options: argparse.Namespace) -> int:
    from codezero.config.load import load_config

    config = load_config(options.settings)
    with heavy_imports():
        from codezero.evaluate.build import evaluator_alone
        from codezero.evaluate.score_file import score_file

    console = Console()
    make_evaluator = partial(evaluator_alone, config, console)
    try:
        num_scored, num_failed = score_file(options.input, options.out, options.settings, make_evaluator, console)
    except KeyboardInterrupt:
        print(f"stopped: lines scored so far are in {options.out}; the same command continues", file=sys.stderr)
        return INTERRUPTED
    scored, failed = counted(num_scored, "solution"), counted(num_failed, "line")
    print(f"{scored} scored, {failed} without a reward; see {options.out}", file=sys.stderr)
    return 1 if num_failed else 0
