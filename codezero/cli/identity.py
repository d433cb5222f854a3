"""`codezero identity`: shows, backs up and restores the node's key."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from codezero.cli.options import Commands, add_command, add_group, path
from codezero.config import checkout
from codezero.errors import IdentityError, told_as

if TYPE_CHECKING:
    from codezero.identity.key import Identity

_EXAMPLES = """\
examples:
  codezero identity show                           who this node is
  codezero identity export backup.pem              an encrypted backup of ./swarm.pem
  codezero identity import backup.pem              the same peer on another machine
  codezero identity show --path node2/swarm.pem    another key

The passphrase is asked for; without a terminal it is taken from CODEZERO_PASSPHRASE.
"""


def add_commands(commands: Commands) -> None:
    identity = add_group(commands, "identity", "show, back up and restore the node's key", _EXAMPLES)
    _command(identity, "show", _show, "peer id, name and file of the node's key")
    export = _command(identity, "export", _export, "write an encrypted backup of the key")
    export.add_argument("file", type=path, metavar="FILE", help="the backup to write; never replaces a file")
    import_ = _command(identity, "import", _import, "restore the key from a backup")
    import_.add_argument("file", type=path, metavar="FILE", help="the backup to read; never replaces a key")


def _command(
    actions: Commands, name: str, run: Callable[[argparse.Namespace], None], text: str
) -> argparse.ArgumentParser:
    parser = add_command(actions, name, run, text, examples=_EXAMPLES)
    parser.add_argument("--path", metavar="P", help="the key (default: IDENTITY_PATH, else swarm.pem in this folder)")
    return parser


def _show(options: argparse.Namespace) -> None:
    from codezero.identity import keyfile
    from codezero.identity.names import animal_name

    path, identity = _existing_key(options)
    print(f"peer id  {identity.peer_id}\nname     {animal_name(identity.peer_id)}\nfile     {path.absolute()}")
    if warning := keyfile.exposure_warning(path):
        print(f"warning: {warning}", file=sys.stderr)


def _export(options: argparse.Namespace) -> None:
    from codezero.identity.backup import export_key
    from codezero.identity.key import write_new

    path, identity = _existing_key(options)
    taken = f"{options.file} already exists: give another name for the backup"
    if os.path.lexists(options.file):
        raise IdentityError(taken)
    backup = export_key(identity, _passphrase(new=True))
    try:
        write_new(options.file, backup)
    except FileExistsError as error:
        raise IdentityError(taken) from error
    print(f"{path} is backed up as {options.file}; it opens with your passphrase only")


def _import(options: argparse.Namespace) -> None:
    from codezero.identity import keyfile
    from codezero.identity.backup import import_key
    from codezero.identity.key import save
    from codezero.identity.names import animal_name

    path = keyfile.identity_path(options.path)
    if os.path.lexists(path):
        raise IdentityError(f"{path} already exists: move it away first, or give another --path")
    with told_as(IdentityError, f"cannot read the backup {options.file}"):
        backup = options.file.read_bytes()
    identity = import_key(backup, _passphrase(new=False))
    save(identity, path)
    print(f"{path} is the key of peer {identity.peer_id} ({animal_name(identity.peer_id)})")


def _existing_key(options: argparse.Namespace) -> tuple[Path, Identity]:
    from codezero.identity import key as identity
    from codezero.identity import keyfile

    path = keyfile.identity_path(options.path)
    if not os.path.lexists(path):
        command = f"{checkout.COMMAND} identity import BACKUP{keyfile.path_option(path)}"
        made_by = f"a first run in a swarm or `{command}`"
        raise IdentityError(f"there is no key {path}: {made_by} makes one")
    return path, identity.load(path)


def _passphrase(new: bool) -> str:
    """Asks for a passphrase on the terminal, twice for a new one; without a terminal returns CODEZERO_PASSPHRASE.
    Raises IdentityError: there is neither, nothing was typed, or the two differ."""
    if not os.isatty(0):
        found = os.environ.get("CODEZERO_PASSPHRASE")
        if found is None:
            raise IdentityError("there is no terminal to ask for the passphrase: give it in CODEZERO_PASSPHRASE")
        return found
    try:
        typed = getpass.getpass("passphrase: ")
        if new and getpass.getpass("the same again: ") != typed:
            raise IdentityError("the two passphrases differ: start again")
    except (EOFError, KeyboardInterrupt, UnicodeDecodeError) as error:  # the command did nothing, so it must not exit 0
        raise IdentityError("no passphrase was typed: start again") from error
    return typed
