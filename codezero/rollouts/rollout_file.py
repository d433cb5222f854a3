"""The rollout file: where a rollout server is, and the token that it answers to. Who has it can use the server."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import msgspec
import yaml

from codezero.config.check import require
from codezero.errors import ConfigError, told_as
from codezero.runtime.files import replace_file

MAX_BYTES = 4096


class RolloutFile(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    """http:// or https://, a host and a port."""
    token: str


def write(path: Path, content: RolloutFile) -> None:
    """Replaces the file, which its owner alone can read. Raises ConfigError: it cannot be written, or read again."""
    if not _is_address(content.url):
        raise ConfigError(f"no rollout server can be at {content.url}: give a host, without a port, with --address")
    with told_as(ConfigError, f"cannot write the rollout file {path}", "give another one with --file"):
        replace_file(path, yaml.safe_dump(msgspec.to_builtins(content), sort_keys=False), private=True)


def read(path: Path, do: str = "copy it again from the machine where `codezero rollout serve` wrote it") -> RolloutFile:
    """Raises ConfigError: the file is missing or damaged; `do` says what to do then."""
    with told_as(ConfigError, f"cannot read the rollout file {path}", do), path.open("rb") as file:
        raw = file.read(MAX_BYTES + 1)
    try:
        found = msgspec.convert(yaml.safe_load(raw) if len(raw) <= MAX_BYTES else None, RolloutFile)
        usable = _is_address(found.url) and found.token.isascii() and found.token.isprintable() and found.token
    except (yaml.YAMLError, msgspec.ValidationError, ValueError, RecursionError):
        usable = False
    if not usable:
        raise ConfigError(f"{path} is no rollout file, or damaged: {do}")
    return found


def read_another(name: str, urls: set[str]) -> RolloutFile:
    """Reads a file of `rollout.servers`, and adds its server to those of the files before it. Raises ConfigError: it
    is missing or damaged, or its server is one of these."""
    file = read(Path(name).expanduser())
    fix = f"its server, at {file.url}, is named by another one too: leave one of the two out"
    require(file.url not in urls, "rollout.servers", name, fix)
    urls.add(file.url)
    return file


def _is_address(url: str) -> bool:
    try:
        parts, _ = urlsplit(url), httpx2.URL(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname and parts.port) and not parts.path.strip("/")
    except (ValueError, httpx2.InvalidURL):
        return False
