"""The account's key in a file, encrypted with a passphrase: Web3 Secret Storage, version 3, which every wallet reads.

https://ethereum.org/en/developers/docs/data-structures-and-encoding/web3-secret-storage/
"""

from __future__ import annotations

import getpass
import json
import os
import secrets
from pathlib import Path
from typing import Any

from codezero.config import PASSPHRASE_ENV, checkout
from codezero.errors import IdentityError
from codezero.identity.backup import MIN_PASSPHRASE, encoded
from codezero.identity.key import write_new
from codezero.ledger import eth_imports
from codezero.ledger.contract import checksummed
from codezero.ledger.faults import WalletError

SCRYPT_N = 1 << 18
"""The cost of the key derivation, as in geth's standard: 256 MiB and about a second."""
_MAX_FILE = 1 << 16


def new_key() -> bytes:
    """Returns a random key of secp256k1. Numbers beyond the group's order are as likely as a hash collision."""
    return secrets.token_bytes(32)


def parse_key(text: str) -> bytes:
    """Parses 64 hex digits, with 0x or without. Raises WalletError: the text is not a key; it is never shown."""
    digits = text.strip().removeprefix("0x")
    try:
        key = bytes.fromhex(digits)
    except ValueError:
        key = b""
    if len(key) != 32 or len(digits) != 64:
        raise WalletError("this is not a private key: a key has 64 hex digits, with 0x before them or without")
    _address(key)
    return key


def save(key: bytes, path: Path, passphrase: str, *, scrypt_n: int = SCRYPT_N) -> str:
    """Writes a new keystore that only its owner may read, and returns the address.

    Raises WalletError: the path is taken, the passphrase is weak, or the file cannot be written."""
    require_free(path)
    if len(passphrase) < MIN_PASSPHRASE:
        raise WalletError(f"a passphrase of {len(passphrase)} characters is too weak: use {MIN_PASSPHRASE} or more")
    address = _address(key)
    stored = eth_imports.keyfile().create_keyfile_json(
        key, encoded(passphrase, WalletError), kdf="scrypt", iterations=scrypt_n
    )
    try:
        write_new(path, json.dumps({**stored, "address": address.removeprefix("0x").lower()}).encode())
    except FileExistsError as error:
        raise _taken(path) from error
    except IdentityError as error:
        raise WalletError(str(error)) from error
    return address


def require_free(path: Path) -> None:
    """Raises WalletError: the path is taken."""
    if os.path.lexists(path):
        raise _taken(path)


def load(path: Path, passphrase: str) -> bytes:
    """Returns the key. Raises WalletError: the passphrase is wrong, or the file is damaged or unreadable."""
    stored = _read(path)
    try:
        key = bytes(eth_imports.keyfile().decode_keyfile_json(stored, encoded(passphrase, WalletError)))
    except (ValueError, TypeError, KeyError, NotImplementedError, MemoryError) as error:
        raise WalletError(
            f"the keystore {path} does not open: the passphrase is wrong, or the file is damaged"
        ) from error
    if "address" in stored and _address(key) != _stored_address(stored, path):
        raise WalletError(f"the keystore {path} holds another key than that of its address: restore it from a backup")
    return key


def address(path: Path) -> str:
    """Returns the checksummed address, which needs no passphrase. Raises WalletError: the file is not a keystore."""
    return _stored_address(_read(path), path)


def passphrase(file: str | None, *, new: bool = False) -> str:
    """Returns the passphrase from the file, else the environment, else the terminal, which asks twice for a new one.
    Raises WalletError: there is none."""
    if file is not None:
        try:
            return Path(file).expanduser().read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError, RuntimeError) as error:
            raise WalletError(f"cannot read the passphrase file {file}: make it a readable text file") from error
    if (found := os.environ.get(PASSPHRASE_ENV)) is not None:
        return found
    if not os.isatty(0):
        raise WalletError(
            f"there is no terminal to ask for the wallet's passphrase: give it in {PASSPHRASE_ENV}, or in a file "
            "(--passphrase-file, ledger.passphrase_file)"
        )
    typed = ask("passphrase of the wallet: ")
    if new and ask("the same again: ") != typed:
        raise WalletError("the two passphrases differ: start again")
    return typed


def ask(prompt: str) -> str:
    """Returns what is typed at the terminal, which does not show it. Raises WalletError: nothing was typed."""
    try:
        return getpass.getpass(prompt)
    except (EOFError, KeyboardInterrupt, UnicodeDecodeError) as error:  # Ctrl-C must not end with status 0
        raise WalletError("nothing was typed: start again") from error


def _taken(path: Path) -> WalletError:
    return WalletError(f"{path} already exists: move it away, it may be the only copy of a key, or name another")


def _address(key: bytes) -> str:
    try:
        return str(eth_imports.local_account(key).address)
    except ValueError as error:
        raise WalletError("this is not a private key of an account: its number is out of range") from error


def _stored_address(stored: dict[str, Any], path: Path) -> str:
    try:
        return checksummed("0x" + str(stored["address"]).removeprefix("0x").lower())
    except (KeyError, ValueError) as error:
        raise WalletError(
            f"the keystore {path} names no address: make a new one with "
            f"`{checkout.command('wallet', 'import', '--keystore', path)}`"
        ) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            stored = json.loads(file.read(_MAX_FILE))
    except OSError as error:
        raise WalletError(
            f"cannot read the keystore {path}: {error.strerror}; "
            f"`{checkout.command('wallet', 'create', '--keystore', path)}` makes one"
        ) from error
    except (ValueError, RecursionError) as error:
        raise WalletError(f"{path} is not a keystore: restore it from a backup, or give another") from error
    if not isinstance(stored, dict) or stored.get("version") != 3:
        raise WalletError(f"{path} is not a keystore of version 3: restore it from a backup, or give another")
    return stored
