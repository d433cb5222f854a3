"""The command line. Arguments are parsed first and heavy modules imported after, so that --help is instant."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codezero import __version__
from codezero.errors import CodezeroError, IdentityError

if TYPE_CHECKING:
    from codezero.network.identity import Identity

_RUN_EXAMPLES = """\
examples:
  codezero run preset=local                        train alone: no hub, no account, no chain
  codezero run preset=faithful                     the defaults of the public CodeZero node
  codezero run model.name=/path/to/model rounds=5  another model, five rounds
  codezero run tasks.mbpp.weight=1 tasks.mbpp.path=mbpp.jsonl
  codezero run --show-config                       every setting, explained, with its value
"""

_IDENTITY_EXAMPLES = """\
examples:
  codezero identity show                           who this node is
  codezero identity export backup.pem              an encrypted backup of ./swarm.pem
  codezero identity import backup.pem              the same peer on another machine
  codezero identity show --path node2/swarm.pem    another key

The passphrase is asked for; without a terminal it is taken from CODEZERO_PASSPHRASE.
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

    identity = commands.add_parser(
        "identity",
        help="show, back up and restore the node's key",
        epilog=_IDENTITY_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).add_subparsers(metavar="action", required=True)
    _identity_command(identity, "show", _identity_show, "peer id, name and file of the node's key")
    export = _identity_command(identity, "export", _identity_export, "write an encrypted backup of the key")
    export.add_argument("file", metavar="FILE", help="the backup to write; never replaces a file")
    import_ = _identity_command(identity, "import", _identity_import, "restore the key from a backup")
    import_.add_argument("file", metavar="FILE", help="the backup to read; never replaces a key")
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


def _identity_command(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    command: Callable[[argparse.Namespace], None],
    text: str,
) -> argparse.ArgumentParser:
    parser = actions.add_parser(
        name,
        help=text,
        description=text,
        epilog=_IDENTITY_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--path", metavar="P", help="the key (default: IDENTITY_PATH, else swarm.pem in this folder)")
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


def _identity_show(options: argparse.Namespace) -> None:
    from codezero.network import keyfile
    from codezero.network.names import animal_name

    path, identity = _existing_key(options)
    print(f"peer id  {identity.peer_id}\nname     {animal_name(identity.peer_id)}\nfile     {path.absolute()}")
    if warning := keyfile.exposure_warning(path):
        print(f"warning: {warning}", file=sys.stderr)


def _identity_export(options: argparse.Namespace) -> None:
    from codezero.network.backup import export_key
    from codezero.network.identity import write_new

    path, identity = _existing_key(options)
    taken = f"{options.file} is there already: give another name for the backup"
    if os.path.lexists(options.file):
        raise IdentityError(taken)
    backup = export_key(identity, _passphrase(new=True))
    try:
        write_new(Path(options.file), backup)
    except FileExistsError as error:
        raise IdentityError(taken) from error
    print(f"{path} is backed up as {options.file}; it opens with your passphrase only")


def _identity_import(options: argparse.Namespace) -> None:
    from codezero.network import keyfile
    from codezero.network.backup import import_key
    from codezero.network.identity import save
    from codezero.network.names import animal_name

    path = keyfile.identity_path(options.path)
    if os.path.lexists(path):
        raise IdentityError(f"{path} is there already: move it away first, or give another --path")
    try:
        backup = Path(options.file).read_bytes()
    except OSError as error:
        raise IdentityError(f"cannot read the backup {options.file}: {error.strerror}") from error
    identity = import_key(backup, _passphrase(new=False))
    save(identity, path)
    print(f"{path} is the key of peer {identity.peer_id} ({animal_name(identity.peer_id)})")


def _existing_key(options: argparse.Namespace) -> tuple[Path, Identity]:
    from codezero.network import identity, keyfile

    path = keyfile.identity_path(options.path)
    if not os.path.lexists(path):
        raise IdentityError(f"there is no key {path}: a first `codezero run` or `codezero identity import` makes one")
    return path, identity.load(path)


def _passphrase(new: bool) -> str:
    """Asks on the terminal, twice for a new one; without a terminal takes the environment's. Raises IdentityError."""
    if not os.isatty(0):
        found = os.environ.get("CODEZERO_PASSPHRASE")
        if found is None:
            raise IdentityError("there is no terminal to ask for the passphrase: give it in CODEZERO_PASSPHRASE")
        return found
    try:
        typed = getpass.getpass("passphrase: ")
        if new and getpass.getpass("the same again: ") != typed:
            raise IdentityError("the two passphrases differ: start again")
    except (EOFError, KeyboardInterrupt, UnicodeDecodeError) as error:  # nothing is done, so not 0 as after a run
        raise IdentityError("no passphrase was typed: start again") from error
    return typed
