"""`codezero wallet`: manages the account that registers the node and submits its rewards on a chain."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from codezero.cli.options import Commands, add_command, add_group, path
from codezero.ledger.faults import WalletError

DEFAULT_RPC = "https://gensyn-testnet.g.alchemy.com/public"
_LOW_WEI = 10**16
"""The balance in wei below which `balance` warns; it pays for about a hundred submissions at testnet prices."""
_EXAMPLES = """\
examples:
  codezero wallet create                              a new account in ./wallet.json
  codezero wallet import --key-file key.txt           an account that you have; without --key-file its key is asked for
  codezero wallet address                             where to send ETH for fees
  codezero wallet balance --rpc-url https://...       what it holds

The passphrase is asked for, or comes from --passphrase-file or CODEZERO_WALLET_PASSPHRASE; never from the command line.
"""


def add_commands(commands: Commands) -> None:
    actions = add_group(commands, "wallet", "make, import and look at the account for a chain", _EXAMPLES)
    for parser in (
        _command(actions, "create", _create, "make a new account"),
        importing := _command(actions, "import", _import, "take over an account by its private key"),
    ):
        parser.add_argument("--passphrase-file", metavar="F", help="a file that holds the passphrase")
    importing.add_argument(
        "--key-file", type=path, metavar="F", help="a file that holds the private key; else it is asked for"
    )
    _command(actions, "address", _show_address, "the account's address")
    balance = _command(actions, "balance", _show_balance, "what the account holds")
    balance.add_argument("--rpc-url", metavar="URL", default=DEFAULT_RPC, help=f"the chain (default: {DEFAULT_RPC})")


def _command(
    actions: Commands, name: str, run: Callable[[argparse.Namespace], None], text: str
) -> argparse.ArgumentParser:
    parser = add_command(actions, name, run, text, examples=_EXAMPLES)
    parser.add_argument(
        "--keystore", type=path, metavar="P", default="wallet.json", help="the keystore (default: wallet.json)"
    )
    return parser


def _create(options: argparse.Namespace) -> None:
    from codezero.ledger import keystore

    _save(options, keystore.new_key())


def _import(options: argparse.Namespace) -> None:
    from codezero.ledger import keystore

    if options.key_file is not None:
        try:
            text = options.key_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise WalletError(f"cannot read the key file {options.key_file}: make it a readable text file") from error
    elif os.isatty(0):
        text = keystore.ask("private key: ")
    else:
        raise WalletError("there is no terminal to ask for the private key: give a file with --key-file")
    _save(options, keystore.parse_key(text))


def _save(options: argparse.Namespace, key: bytes) -> None:
    from codezero.ledger import keystore

    path = options.keystore
    keystore.require_free(path)
    address = keystore.save(key, path, keystore.passphrase(options.passphrase_file, new=True))
    print(f"address  {address}\nfile     {path.absolute()}")
    print("back up the file and the passphrase: without both of them the account is lost", file=sys.stderr)


def _show_address(options: argparse.Namespace) -> None:
    from codezero.ledger import keystore

    print(keystore.address(options.keystore))


def _show_balance(options: argparse.Namespace) -> None:
    from codezero.ledger import keystore
    from codezero.ledger.account import ether
    from codezero.ledger.jsonrpc import JsonRpc
    from codezero.ledger.rpc import balance

    address = keystore.address(options.keystore)
    chain_id, wei = balance(JsonRpc(options.rpc_url, setting="--rpc-url"), address)
    print(f"address  {address}\nbalance  {ether(wei)} ETH on chain {chain_id}")
    if wei < _LOW_WEI:
        print(f"warning: this pays for few submissions: send some ETH to {address}", file=sys.stderr)
