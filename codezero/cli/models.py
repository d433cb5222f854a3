"""`codezero models`: lists, pulls and verifies models."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from codezero.cli.options import Commands, add_command, add_group
from codezero.runtime.logs import quiet_libraries


def add_commands(commands: Commands) -> None:
    models = add_group(commands, "models", "list, pull and verify models")
    _command(models, "list", _list, "the catalogue, and what is prepared on this machine", named=False)
    pull = _command(models, "pull", _pull, "download and prepare a model")
    pull.add_argument("--force", action="store_true", help="replace a model that is already prepared")
    _command(models, "verify", _verify, "compare a prepared model with its recorded hashes")


def _command(
    models: Commands, name: str, run: Callable[[argparse.Namespace], None], text: str, named: bool = True
) -> argparse.ArgumentParser:
    parser = add_command(models, name, run, text)
    if named:
        parser.add_argument("name", help="catalogue name, hub id or folder")
    parser.add_argument("--cache-dir", default="~/.cache/codezero", help="where prepared models are kept")
    return parser


def _list(options: argparse.Namespace) -> None:
    from codezero.llm import store

    for status in store.list_models(options.cache_dir):
        parameters = f"{status.parameters / 1e6:,.0f} M" if status.parameters else "?"
        place = "" if status.state is store.ModelState.ABSENT else f"  {status.folder}"
        size = f"{status.download_bytes / 1e9:.2f} GB"
        print(f"{status.name:32} {parameters:>8} parameters  {size:>8} download  {status.state.value}{place}")


def _pull(options: argparse.Namespace) -> None:
    from codezero.llm import store

    quiet_libraries()
    print(store.prepare(options.name, options.cache_dir, force=options.force))


def _verify(options: argparse.Namespace) -> None:
    from codezero.llm import store

    print(f"{options.name} is whole: {store.verify(options.name, options.cache_dir)}")
