"""`codezero report`: writes a report of a run as one HTML page, and as a picture."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from codezero.cli.options import FOLDERS, Commands, add_command, path, runs_in
from codezero.errors import CommandError
from codezero.runtime.console import Console

_EXAMPLES = """\
examples:
  codezero report                                  the node of this folder, into report.html
  codezero report swarms/home --png                a whole swarm, and a picture beside the page
  codezero report --before eval/start --after eval/mbpp    with what two `codezero eval --out ...` measured

The page needs no network and no script. A report is replaced by a newer one; any other file is left alone.
"""


def add_commands(commands: Commands) -> None:
    text = "write a report of a run: curves, solutions, before and after"
    about = f"W{text[1:]}, as one HTML file. The node may be running."
    report = add_command(commands, "report", _report, text, about=about, examples=_EXAMPLES)
    text = f"a state or swarm folder (default the first of {', '.join(FOLDERS)})"
    report.add_argument("folder", nargs="?", type=path, metavar="FOLDER", help=text)
    text = "the page (default report.html; - prints it)"
    report.add_argument("--out", type=_path_or_dash, default="report.html", metavar="FILE", help=text)
    report.add_argument("--png", action="store_true", help="also draw a picture of the curves, beside the page")
    report.add_argument(
        "--before", type=path, metavar="RESULTS", help="results.jsonl of `codezero eval` before, or its folder"
    )
    report.add_argument("--after", type=path, metavar="RESULTS", help="the same after")
    report.add_argument("--force", action="store_true", help="replace the file even if it is not a report")


def _path_or_dash(text: str) -> Path:
    return Path(text) if text == "-" else path(text)


def _report(options: argparse.Namespace) -> None:
    if (options.before is None) != (options.after is None):
        raise CommandError("--before and --after go together: give the results of both")
    if not options.out.name:
        raise CommandError(f"--out '{options.out}' is no file: give one such as report.html")
    to_stdout, out = str(options.out) == "-", options.out
    picture = out.with_suffix(".png")
    if options.png and to_stdout:
        raise CommandError("--out - prints the page alone: leave out --png, or give a file")
    if options.png and picture == out:
        raise CommandError(f"--out {out} is the page: the picture lies beside it as .png")
    from codezero.views.report import write

    for file in [] if to_stdout else [out, *([picture] if options.png else [])]:
        write.check(file, options.force)
    runs = runs_in([] if options.folder is None else [options.folder])
    from codezero.views.report.measured import compare, read_measured
    from codezero.views.report.page import page
    from codezero.views.report.summary import gather

    measured = [read_measured(one) for one in (options.before, options.after) if one is not None]
    facts = [gather(run) for run in runs]
    written = [(out, page(facts, compare(*measured) if measured else None).encode("utf-8", "backslashreplace"))]
    if to_stdout:
        sys.stdout.buffer.write(written[0][1])
        return
    if options.png:
        from codezero.views.report.picture import png

        written.append((picture, png(facts)))
    for file, content in written:
        write.write(file, content)
        Console().line(f"wrote {file}")
