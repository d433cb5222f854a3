"""Options that several commands have, and functions that read them."""

from __future__ import annotations

import argparse
import gc
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from codezero.errors import StateError
from codezero.runtime.logs import quiet_libraries

if TYPE_CHECKING:
    from codezero.config import NodeConfig
    from codezero.views.runs import Run

FOLDERS = ("state", "swarms/home", "gpus")
"""The default folders: of a node, of a swarm, and of nodes on several GPUs, as the launch script names them."""
INTERRUPTED = 130
"""The exit code of a measurement that SIGINT has stopped: 128 plus the signal's number, by the shells' convention."""

_SECONDS = {"s": 1, "m": 60, "h": 3600}
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int | None],
    text: str,
    *,
    about: str = "",
    examples: str = "",
) -> argparse.ArgumentParser:
    """Adds a command that calls `run`, and returns its parser, for adding options. `text` describes the command in the
    list of commands; `about` describes it in its own help, where it defaults to `text`."""
    parser = _add_parser(commands, name, text, about or text, examples)
    parser.set_defaults(command=run)
    return parser


def add_group(commands: Commands, name: str, text: str, examples: str = "") -> Commands:
    """Adds a command that has subcommands, and returns the object to add them to."""
    return _add_parser(commands, name, text, text, examples).add_subparsers(metavar="action", required=True)


def _add_parser(commands: Commands, name: str, text: str, about: str, examples: str) -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter if examples else argparse.HelpFormatter
    return commands.add_parser(name, help=text, description=about, epilog=examples, formatter_class=form)


def add_folders(parser: argparse.ArgumentParser, default: str) -> None:
    """Adds the folders of the nodes that a command looks at; `default` says which of the usual ones it takes."""
    text = f"state or swarm folders (default: {default} of {', '.join(FOLDERS)})"
    parser.add_argument("folders", nargs="*", type=path, metavar="FOLDER", help=text)


def add_stop_with_parent(parser: argparse.ArgumentParser) -> None:
    """Adds a hidden option for programs that start this one: it ends when its standard input is closed."""
    parser.add_argument("--stop-with-parent", action="store_true", help=argparse.SUPPRESS)


def config_in_batches(options: argparse.Namespace, section: str) -> NodeConfig:
    """Returns the configuration of a command whose option --batches is a setting of this section, and which reads no
    `rounds`. Raises ConfigError: a setting is not possible."""
    from codezero.config.check import refuse
    from codezero.config.load import load_config

    refuse(options.settings, {"rounds": "this command does batches, so use --batches N"}, "here")
    batches = [] if options.batches is None else [f"{section}.batches={options.batches}"]
    return load_config([*options.settings, *batches])


def duration(text: str) -> float:
    """Returns the seconds of a time such as 60s, 10m or 3h. Raises ArgumentTypeError: the format is wrong, or the time
    is below 1 s."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if seconds < 1:
        raise argparse.ArgumentTypeError(f"{text} is no time of a second or more: write it as 60s, 10m or 3h")
    return seconds


def path(text: str) -> Path:
    """Returns a path in which a leading `~` is resolved. Raises ArgumentTypeError: there is no such home, or nothing,
    as where a variable is not set, or a dash, by which others mean standard input or output."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty: leave the option out, or give a file or folder")
    if text == "-":
        raise argparse.ArgumentTypeError("- is no file: give the name of one, or ./- if it is called that")
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from error


def number(convert: Callable[[str], Any], check: Callable[[Any], bool], wanted: str) -> Callable[[str], Any]:
    """Returns the type of an option: what `convert` makes of its text, where `check` holds. `wanted` describes
    such texts."""

    def parse(text: str) -> Any:
        try:
            value = convert(text)
        except ValueError:
            value = None
        if value is None or not check(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
        return value

    return parse


count = number(int, lambda value: value >= 0, "a whole number from 0 on")
positive = number(int, lambda value: value >= 1, "a whole number from 1 on")
port = number(int, lambda value: 0 <= value <= 65535, "a port: use 0 to 65535")
fixed_port = number(int, lambda value: 1 <= value <= 65535, "a port: use 1 to 65535")


@contextmanager
def heavy_imports() -> Iterator[None]:
    """Quiets the libraries of heavy modules that are imported inside, and has the garbage collector skip their objects.

    torch and transformers have a million objects: their repeated traversal took 1.6 of the 5.7 seconds of processor
    time in which a node imports them and ends.
    """
    quiet_libraries()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def runs_in(folders: Sequence[Path], most: int | None = None) -> list[Run]:
    """Returns the runs in the folders, or, without any, those in the first of `FOLDERS` that has some. `most` is as in
    `Run`. Raises StateError: there are none."""
    from codezero.views.runs import find_runs

    if folders:
        return [run for folder in folders for run in find_runs(folder, most)]
    for name in FOLDERS:
        with suppress(StateError):
            return find_runs(Path(name), most)
    raise StateError(
        f"no node has run here, in {', '.join(FOLDERS)}: give the state folder of a node, or a swarm folder"
    )
