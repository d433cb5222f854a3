"""`codezero swarm`: hosts a swarm and invites others to it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codezero.cli.options import (
    Commands,
    add_command,
    add_group,
    add_stop_with_parent,
    count,
    fixed_port,
    path,
    positive,
)
from codezero.runtime.console import Console
from codezero.runtime.logs import quiet_libraries

if TYPE_CHECKING:
    from codezero.launch.swarm_settings import UpOptions

_FOLDER = "swarms/home"
_EXAMPLES = """\
examples:
  codezero swarm up --nodes 3                      bootnode, proposer and three nodes on this machine, until stopped
  codezero swarm up --nodes 3 --rounds 10 swarm.num_local=2
  codezero swarm up --nodes 1 --with-verifier      with a test writer, for the tests of the proposer's problems
  codezero swarm invite                            the file with which other machines join it
  codezero swarm bootnode --listen /ip4/0.0.0.0/tcp/4001
"""


def add_commands(commands: Commands) -> None:
    actions = add_group(commands, "swarm", "host a swarm of your own and invite others to it", _EXAMPLES)

    text = "run a bootnode, several nodes and a proposer on this machine"
    up = add_command(actions, "up", _up, text, examples=_EXAMPLES)
    add_up_options(up, folder=_FOLDER, rounds=0)
    add_gpus_option(up)
    add_stop_with_parent(up)
    up.add_argument("settings", nargs="*", metavar="key=value", help="settings of all nodes, as for codezero run")

    invite = add_command(actions, "invite", _invite, "write the file with which other machines join the swarm")
    invite.add_argument("--folder", type=path, default=_FOLDER, help=f"where the swarm is kept (default {_FOLDER})")
    invite.add_argument(
        "--out", type=path, metavar="FILE", help="where to write it (default: invite.yaml in the folder)"
    )
    invite.add_argument("--address", metavar="HOST", help="IP address or name under which others reach this machine")

    text = "run a bootnode only, through which the nodes of a swarm find each other"
    bootnode = add_command(actions, "bootnode", _bootnode, text)
    for option, note in (("--listen", "to listen on (default /ip4/0.0.0.0/tcp/4001)"), ("--announce", "to announce")):
        help_ = f"multiaddress {note}; may be repeated"
        bootnode.add_argument(option, action="append", default=[], metavar="ADDRESS", help=help_)
    bootnode.add_argument(
        "--identity",
        type=path,
        default="bootnode.pem",
        metavar="FILE",
        help="its key, made on first start (default bootnode.pem)",
    )
    bootnode.add_argument(
        "--network",
        default="native",
        choices=("native", "genrl"),
        help="the wire format of the swarms it serves (default native)",
    )
    bootnode.add_argument(
        "--invite", type=path, metavar="FILE", help="also write a swarm file, for nodes to join it with"
    )
    add_stop_with_parent(bootnode)


def add_up_options(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup, *, folder: str | None, rounds: int | None
) -> None:
    """Adds the options of `swarm up` with the given defaults."""
    parser.add_argument(
        "--nodes",
        type=positive,
        metavar="K",
        help="how many nodes (default 2, or one for each GPU; fewer where memory is short)",
    )
    parser.add_argument(
        "--proposers", type=count, default=1, metavar="P", help="how many write problems for them (default 1)"
    )
    text = "also train a test writer, which writes the tests of their problems"
    parser.add_argument("--with-verifier", action="store_true", help=text)
    parser.add_argument(
        "--rounds", type=count, default=rounds, metavar="N", help="stop when every node has finished N rounds"
    )
    parser.add_argument("--folder", type=path, default=folder, help=f"where all is kept (default {_FOLDER})")
    parser.add_argument(
        "--port", type=fixed_port, metavar="P", help="the bootnode's port (default: the one it had, or a free one)"
    )
    parser.add_argument(
        "--announce",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="multiaddress under which others reach the bootnode, as /ip4/203.0.113.7/tcp/4001; may be repeated",
    )


def add_gpus_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Adds the option --gpus, of `swarm up` and of a start."""
    text = "GPUs to divide nodes among: all (default where there are several), or 0,1,..."
    parser.add_argument("--gpus", default="", metavar="LIST", help=text)


def up_options(options: argparse.Namespace, folder: Path, settings: Sequence[str] = ()) -> UpOptions:
    """Returns what `add_up_options` and `add_gpus_option` have read."""
    from codezero.launch.swarm_settings import UpOptions

    return UpOptions(
        nodes=options.nodes or 0,
        gpus=options.gpus,
        proposers=options.proposers,
        with_verifier=options.with_verifier,
        rounds=options.rounds or 0,
        folder=folder,
        port=options.port,
        announce=options.announce,
        settings=settings,
    )


def _up(options: argparse.Namespace) -> int:
    from codezero.launch.up import up

    return up(up_options(options, options.folder, options.settings))


def _invite(options: argparse.Namespace) -> None:
    from codezero.launch.hosting import invite

    invite(options.folder, options.out, options.address, Console())


def _bootnode(options: argparse.Namespace) -> int:
    from codezero.launch.hosting import parse

    listen = options.listen or ["/ip4/0.0.0.0/tcp/4001"]
    addresses = [*(("--listen", text) for text in listen), *(("--announce", text) for text in options.announce)]
    for option, address in addresses:
        parse(option, address)
    quiet_libraries()
    from codezero.config import Network
    from codezero.launch.bootnode import run_bootnode

    return run_bootnode(listen, options.announce, options.identity, Network(options.network), options.invite)
