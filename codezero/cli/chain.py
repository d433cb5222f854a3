"""`codezero chain`: runs the user's own chain, for a swarm on several machines."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable

from codezero.cli.options import Commands, add_command, add_group, add_stop_with_parent, duration, path, port
from codezero.runtime.console import Console
from codezero.runtime.stop import on_stop

_EXAMPLES = """\
examples:
  codezero chain up                                run a chain on anvil in chains/home, until stopped
  codezero chain deploy                            put the coordinator on it; prints the settings to use it
  codezero chain fund 0x52908400098527886E0F7030069857D2E4169EE7
  codezero chain tick --every 60s                  advance the round every minute; may run twice
  codezero chain bootnodes add /ip4/203.0.113.7/tcp/4001/p2p/Qm...
  codezero chain up --host 0.0.0.0                 for nodes on other machines: read the warning
"""


def add_commands(commands: Commands) -> None:
    actions = add_group(commands, "chain", "run a chain of your own and the coordinator on it", _EXAMPLES)
    up = add_command(actions, "up", _up, "run a chain on anvil until it is stopped", examples=_EXAMPLES)
    _folder_option(up)
    up.add_argument("--host", default="127.0.0.1", help="the address to listen on (default 127.0.0.1)")
    up.add_argument("--port", type=port, default=8545, help="the port to listen on (default 8545)")
    up.add_argument("--chain-id", type=int, metavar="N", help="the id of a new chain (default 31337)")
    add_stop_with_parent(up)

    deploy = _client_command(
        actions, "deploy", _deploy, "deploy the coordinator contract; if it is there, print its address"
    )
    deploy.add_argument("--stages", type=int, default=1, metavar="N", help="stages a round has (default 1)")
    fund = _client_command(actions, "fund", _fund, "send money for gas to accounts")
    fund.add_argument("addresses", nargs="+", metavar="ADDRESS", help="the address of a node's wallet")
    fund.add_argument("--amount", default="1", metavar="X", help="coins for each (default 1)")
    tick = _client_command(actions, "tick", _tick, "advance the round, or its stage, again and again, until stopped")
    tick.add_argument("--every", type=duration, required=True, metavar="T", help="how often, such as 60s, 10m or 3h")
    add_stop_with_parent(tick)

    text = "the addresses through which nodes of the chain's swarm find each other"
    inner = add_group(actions, "bootnodes", text)
    add = _client_command(inner, "add", _add_bootnodes, "add addresses")
    add.add_argument("addresses", nargs="+", metavar="MULTIADDRESS", help="/ip4/203.0.113.7/tcp/4001/p2p/Qm...")
    _client_command(inner, "list", _list_bootnodes, "print them")
    _client_command(inner, "clear", _clear_bootnodes, "remove all")


def _client_command(
    actions: Commands, name: str, run: Callable[[argparse.Namespace], None], text: str
) -> argparse.ArgumentParser:
    parser = add_command(actions, name, run, text)
    _folder_option(parser)
    parser.add_argument("--rpc-url", metavar="URL", help="where the chain is (default: where it last ran)")
    return parser


def _folder_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--folder",
        type=path,
        default="chains/home",
        help="where the chain and its keys are kept (default chains/home)",
    )


def _up(options: argparse.Namespace) -> int:
    from codezero.devchain.up import ChainOptions, up

    return up(ChainOptions(folder=options.folder, host=options.host, port=options.port, chain_id=options.chain_id))


def _deploy(options: argparse.Namespace) -> None:
    from codezero.devchain import coordinator

    coordinator.deploy(options.folder, options.rpc_url, options.stages, Console())


def _fund(options: argparse.Namespace) -> None:
    from codezero.devchain import coordinator

    coordinator.fund(options.folder, options.rpc_url, options.addresses, options.amount, Console())


def _tick(options: argparse.Namespace) -> None:
    from codezero.devchain import coordinator, tick

    asked = threading.Event()
    on_stop(lambda *_: asked.set())
    client, contract = coordinator.open_coordinator(options.folder, options.rpc_url)
    tick.run(client, contract, options.every, asked, Console())


def _add_bootnodes(options: argparse.Namespace) -> None:
    from codezero.devchain import coordinator

    coordinator.add_bootnodes(options.folder, options.rpc_url, options.addresses, Console())


def _list_bootnodes(options: argparse.Namespace) -> None:
    from codezero.devchain import coordinator

    console = Console()
    for address in coordinator.bootnodes(options.folder, options.rpc_url):
        console.line(address)


def _clear_bootnodes(options: argparse.Namespace) -> None:
    from codezero.devchain import coordinator

    coordinator.clear_bootnodes(options.folder, options.rpc_url, Console())
