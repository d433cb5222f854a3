"""The command line. Arguments are parsed first and heavy modules imported after, so that --help is instant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from codezero import __version__
from codezero.errors import CodezeroError

_RUN_EXAMPLES = """\
examples:
  codezero run preset=local                        train alone: no hub, no account, no chain
  codezero run preset=faithful                     the defaults of the public CodeZero node
  codezero run model.name=/path/to/model rounds=5  another model, five rounds
  codezero run tasks.mbpp.weight=1 tasks.mbpp.path=mbpp.jsonl
  codezero run swarm=invite.yaml                   join a swarm that you were invited to
  codezero run --show-config                       every setting, explained, with its value
"""

_SWARM_EXAMPLES = """\
examples:
  codezero swarm up --nodes 3                      a bootnode and three nodes on this machine, until stopped
  codezero swarm up --nodes 3 --rounds 10 train.method=lora
  codezero swarm invite                            the file with which other machines join it
  codezero swarm bootnode --listen /ip4/0.0.0.0/tcp/4001
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
    _stop_with_parent_option(run)
    run.set_defaults(command=_run)
    _add_swarm(commands)

    models = commands.add_parser("models", help="list, pull and verify models").add_subparsers(
        metavar="action", required=True
    )
    _model_command(models, "list", _models_list, "the catalogue, and what is prepared on this machine", named=False)
    pull = _model_command(models, "pull", _models_pull, "download and prepare a model")
    pull.add_argument("--force", action="store_true", help="replace a model that is already prepared")
    _model_command(models, "verify", _models_verify, "compare a prepared model with its recorded hashes")
    return parser


def _add_swarm(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    raw = argparse.RawDescriptionHelpFormatter
    text = "host a swarm of your own and invite others to it"
    swarm = commands.add_parser("swarm", help=text, description=text, epilog=_SWARM_EXAMPLES, formatter_class=raw)
    actions = swarm.add_subparsers(metavar="action", required=True)

    text = "run a bootnode and several nodes on this machine"
    up = actions.add_parser("up", help=text, description=text, epilog=_SWARM_EXAMPLES, formatter_class=raw)
    up.add_argument("--nodes", type=int, default=2, metavar="K", help="how many nodes (default 2)")
    up.add_argument("--rounds", type=int, default=0, metavar="N", help="stop when every node has finished N rounds")
    _folder_option(up)
    up.add_argument(
        "--port", type=int, metavar="P", help="the bootnode's port (default: the one it had, or a free one)"
    )
    up.add_argument(
        "--announce",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="multiaddress under which others reach the bootnode, as /ip4/203.0.113.7/tcp/4001; may be repeated",
    )
    up.add_argument("settings", nargs="*", metavar="key=value", help="settings of all nodes, as for codezero run")
    up.set_defaults(command=_swarm_up)

    text = "write the file with which other machines join the swarm"
    invite = actions.add_parser("invite", help=text, description=text)
    _folder_option(invite)
    invite.add_argument("--out", metavar="FILE", help="where to write it (default: invite.yaml in the folder)")
    invite.add_argument("--address", metavar="HOST", help="IP address or name under which others reach this machine")
    invite.set_defaults(command=_swarm_invite)

    text = "run a bootnode only, through which the nodes of a swarm find each other"
    bootnode = actions.add_parser("bootnode", help=text, description=text)
    for option, note in (("--listen", "to listen on (default /ip4/0.0.0.0/tcp/4001)"), ("--announce", "to announce")):
        help_ = f"multiaddress {note}; may be repeated"
        bootnode.add_argument(option, action="append", default=[], metavar="ADDRESS", help=help_)
    bootnode.add_argument(
        "--identity", default="bootnode.pem", metavar="FILE", help="its key, made on first start (default bootnode.pem)"
    )
    _stop_with_parent_option(bootnode)
    bootnode.set_defaults(command=_swarm_bootnode)


def _folder_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", default="swarms/home", help="where the swarm is kept (default swarms/home)")


def _stop_with_parent_option(parser: argparse.ArgumentParser) -> None:
    """For programs that keep this one as a child: it ends when its standard input does."""
    parser.add_argument("--stop-with-parent", action="store_true", help=argparse.SUPPRESS)


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
    from codezero.stop import stop_with_parent

    if options.stop_with_parent:
        stop_with_parent()
    rounds = [] if options.rounds is None else [f"rounds={options.rounds}"]
    config = compose.load([*options.settings, *rounds])
    if options.show_config:
        print(compose.explain(config), end="")
        return 0
    from codezero.observe.logs import quiet_libraries

    quiet_libraries()
    from codezero.node import run_node

    return run_node(config)


def _swarm_up(options: argparse.Namespace) -> int:
    from codezero.swarm import UpOptions, up

    return up(
        UpOptions(
            nodes=options.nodes,
            rounds=options.rounds,
            folder=Path(options.folder).expanduser(),
            port=options.port,
            announce=options.announce,
            settings=options.settings,
        )
    )


def _swarm_invite(options: argparse.Namespace) -> None:
    from codezero.hosting import invite
    from codezero.observe.console import Console

    out = Path(options.out).expanduser() if options.out else None
    invite(Path(options.folder).expanduser(), out, options.address, Console())


def _swarm_bootnode(options: argparse.Namespace) -> int:
    from codezero.hosting import parse
    from codezero.observe.logs import quiet_libraries
    from codezero.stop import stop_with_parent

    if options.stop_with_parent:
        stop_with_parent()
    listen = options.listen or ["/ip4/0.0.0.0/tcp/4001"]
    addresses = [*(("--listen", text) for text in listen), *(("--announce", text) for text in options.announce)]
    for option, address in addresses:
        parse(option, address)
    quiet_libraries()
    from codezero.bootnode import run_bootnode

    return run_bootnode(listen, options.announce, Path(options.identity).expanduser())


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
