"""Collects the secrets of the node and its user on this machine, so that a support archive can be searched for them.

Their values stay in memory: texts are compared with them, and they are never written or shown.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from codezero.config.names import leaves
from codezero.doctor import allowed, identity
from codezero.doctor.case import ExaminedNode
from codezero.doctor.redact import SHORTEST
from codezero.errors import ConfigError, IdentityError
from codezero.ledger.modal import KEYS
from codezero.rollouts import rollout_file

_MAX_FILE = 1 << 20
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASS|PWD|CREDENTIAL|COOKIE|MNEMONIC|SEED_PHRASE|AUTH|(?:^|_)(?:KEY|APIKEY)(?:_|$)|POLICY_ID",
    re.IGNORECASE,
)
_PUBLIC_NAME = re.compile(r"(?:_ENV|_FILE|_PATH|_DIR|_SOCK|_KEYS)$|^(?:OLD)?PWD$", re.IGNORECASE)
_TELL_NOTHING = ("root", "user", "app", "codezero", "ubuntu", "debian", "admin", "node", "work", "home", "localhost")
"""Names of users and machines that are too common to identify anybody, and that logs are full of."""
_NETRC = re.compile(r"\b(?:password|account)\s+(\S+)")


def values(case: ExaminedNode) -> set[bytes]:
    """Returns every secret found in the environment, the configuration, and the files that are known to hold some."""
    found = set(_of_environment(case.environment))
    found |= {value for name, url in leaves(case.config).items() if name in allowed.URLS for value in _in_url(url)}
    found.add(case.config.ledger.org_id)  # whoever has it can make the sign-in app write as the user
    encoded = {value.encode("utf-8", "surrogateescape") for value in found}
    encoded |= set(_of_files(case))
    return {value for value in encoded if len(value) >= SHORTEST}


def private_names(case: ExaminedNode) -> dict[str, str]:
    """Returns the names that identify the user (home folder, user, machine), each with its replacement."""
    home = case.environment.get("HOME") or str(Path.home())
    user = Path(home).name
    names = {home: "~", str(Path(home).resolve()): "~"}
    for name in {user, case.environment.get("USER", ""), case.environment.get("LOGNAME", "")}:
        names[name] = "USER"
    names[platform.node()] = "MACHINE"
    return {name: instead for name, instead in names.items() if len(name) >= 3 and name.lower() not in _TELL_NOTHING}


def _of_environment(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if _SECRET_NAME.search(name) and not _PUBLIC_NAME.search(name):
            yield value.strip()
        if "://" in value:
            yield from _in_url(value)


def _in_url(url: str) -> Iterator[str]:
    """Yields the user, password, query values, and parts of the path that look like keys of hosted RPCs."""
    try:
        parts = urlsplit(url)
        named = [parts.password or "", parts.username if parts.password or len(parts.username or "") > 15 else ""]
    except ValueError:
        yield url
        return
    named += [pair.partition("=")[2] for pair in re.split("[&;]", parts.query)]
    named += [part for part in parts.path.split("/") if is_key_like(part)]
    for value in named:
        if value:
            yield value
            yield unquote(value)


def is_key_like(part: str) -> bool:
    """Returns whether a part of a URL's path may be a key: 16 or more letters, digits, `_`, `~` and `-`, with at least
    one digit and one letter."""
    return bool(re.fullmatch(r"[\w~-]{16,}", part) and re.search(r"\d", part) and re.search("[a-zA-Z]", part))


def _of_files(case: ExaminedNode) -> Iterator[bytes]:
    with suppress(IdentityError):
        yield _read(identity.key_path(case))
    ledger, home = case.config.ledger, Path(case.environment.get("HOME") or Path.home())
    if ledger.passphrase_file is not None:
        yield _read(Path(ledger.passphrase_file).expanduser()).rstrip(b"\r\n")
    if case.config.push.token_file:
        yield _read(Path(case.config.push.token_file).expanduser()).strip()
    login = Path(ledger.login_dir).expanduser()
    for path in (Path(ledger.keystore).expanduser(), login / KEYS, login / "userData.json"):
        yield from (value.encode() for value in _strings(path))
    yield _read(login / "token").strip()
    for path in (login.parent / "sign-in.env", login.parent / ".env", Path(".env")):
        for line in _read(path).decode("utf-8", "replace").splitlines():
            name, equals, value = line.partition("=")
            if equals and _SECRET_NAME.search(name):
                yield value.strip().strip("\"'").encode()
    hub = Path(case.environment.get("HF_HOME") or home / ".cache" / "huggingface")
    for path in (hub / "token", *([Path(named)] if (named := case.environment.get("HF_TOKEN_PATH")) else [])):
        yield _read(path).strip()
    for match in _NETRC.finditer(_read(home / ".netrc").decode("utf-8", "replace")):
        yield match[1].encode()
    for name in (*case.config.rollout.servers, "rollout-server.yaml"):  # of a node, and of a rollout server
        with suppress(ConfigError):
            yield rollout_file.read(Path(name).expanduser()).token.encode()
    for path in Path("chains").glob("*/accounts.json"):
        yield from (value.encode() for value in _strings(path))


def _strings(path: Path) -> Iterator[str]:
    """Yields every text in a JSON file of keys or users, except addresses of accounts, which are public."""
    try:
        found = json.loads(_read(path))
    except (ValueError, RecursionError):
        return
    yield from (text for text in _walk(found) if not re.fullmatch("(?:0x)?[0-9a-fA-F]{40}", text) and _is_private(text))


def _is_private(text: str) -> bool:
    """Returns whether a text may be a secret; the words of a keystore's format, and dates, are not."""
    words = ("aes-128-ctr", "scrypt", "pbkdf2", "hmac-sha256")
    return text not in words and not re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", text)


def _walk(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if "-" in key:  # a user's id; other keys are names of fields
                yield key
            yield from _walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner)


def _read(path: Path) -> bytes:
    """Returns at most the first `_MAX_FILE` bytes of a file; nothing if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return file.read(_MAX_FILE)
    except OSError:
        return b""
