"""The command line. Arguments are parsed first and heavy modules imported after, so that --help is instant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from codezero import __version__
from codezero.errors import CodezeroError

_RUN_EXAMPLES = """\
examples:
  codezero run preset=local                        train alone: no hub, no account, no chain
  codezero run preset=faithful                     the defaults of the public CodeZero node
  codezero run model.name=/path/to/model rounds=5  another model, five rounds
  codezero run tasks.mbpp.weight=1 tasks.mbpp.path=mbpp.jsonl
  codezero run --show-config                       every setting, explained, with its value
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code: 0 done or stopped by the user, 1 an error told in one line."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    # argparse takes one run of positionals only; settings may also follow an option, as in --rounds 3 key=value.
    if any(argument.startswith("-") or "settings" not in options for argument in rest):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.settings += rest
    try:
        return int(options.command(options) or 0)
    except CodezeroError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="codezero", description="A node of a swarm in which language models learn to code."
    )
    parser.add_argument("--version", action="version", version=f"codezero {__version__}")
    commands = parser.add_subparsers(metavar="command", required=True)

    run = commands.add_parser(
        "run",
        help="run a node until it is stopped",
        description="Runs a node: draw tasks, solve, score, learn, settle, and again.",
        epilog=_RUN_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("--rounds", type=int, metavar="N", help="stop after N rounds (same as rounds=N)")
    run.add_argument("--show-config", action="store_true", help="print the resulting configuration and exit")
    run.add_argument("settings", nargs="*", metavar="key=value", help="settings over those of configs/node.yaml")
    run.set_defaults(command=_run)

    models = commands.add_parser("models", help="list, pull and verify models").add_subparsers(
        metavar="action", required=True
    )
    _model_command(models, "list", _models_list, "the catalogue, and what is prepared on this machine", named=False)
    pull = _model_command(models, "pull", _models_pull, "download and prepare a model")
    pull.add_argument("--force", action="store_true", help="replace a model that is already prepared")
    _model_command(models, "verify", _models_verify, "compare a prepared model with its recorded hashes")
    return parser


def _model_command(
    models: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    command: Callable[[argparse.Namespace], None],
    text: str,
    named: bool = True,
) -> argparse.ArgumentParser:
    parser = models.add_parser(name, help=text, description=text)
    if named:
        parser.add_argument("name", help="catalogue name, hub id or folder")
    parser.add_argument("--cache-dir", default="~/.cache/codezero", help="where prepared models are kept")
    parser.set_defaults(command=command)
    return parser


def _run(options: argparse.Namespace) -> int:
    from codezero import compose

    rounds = [] if options.rounds is None else [f"rounds={options.rounds}"]
    config = compose.load([*options.settings, *rounds])
    if options.show_config:
        print(compose.explain(config), end="")
        return 0
    from codezero.observe.logs import quiet_libraries

    quiet_libraries()
    from codezero.node import run_node

    return run_node(config)


def _models_list(options: argparse.Namespace) -> None:
    from codezero.llm import store

    for status in store.list_models(options.cache_dir):
        parameters = f"{status.parameters / 1e6:,.0f} M" if status.parameters else "?"
        place = "" if status.state is store.ModelState.ABSENT else f"  {status.folder}"
        size = f"{status.download_bytes / 1e9:.2f} GB"
        print(f"{status.name:32} {parameters:>8} parameters  {size:>8} download  {status.state.value}{place}")


def _models_pull(options: argparse.Namespace) -> None:
    from codezero.llm import store
    from codezero.observe.logs import quiet_libraries

    quiet_libraries()
    print(store.prepare(options.name, options.cache_dir, force=options.force))


def _models_verify(options: argparse.Namespace) -> None:
    from codezero.llm import store

    print(f"{options.name} is whole: {store.verify(options.name, options.cache_dir)}")
