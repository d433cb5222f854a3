"""The allow-lists of the support archive: which settings and which fields of records may come into it.

Numbers, switches and choices tell no secret, but a text may. So a setting that is a text comes in only if it is listed
here, and a field of a record only if the record's type has it today.
"""

from __future__ import annotations

import dataclasses
import json
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from codezero.config import NodeConfig
from codezero.config.names import leaves

SET = "[set]"
"""The placeholder for a text that is not listed."""
_TEXTS = {
    "": ("state_dir",),
    "model": ("name", "cache_dir"),
    "evaluator": ("model", "api_key_env"),
    "proposer": ("model", "writer", "api_key_env"),
    "tasks.mbpp": ("path", "split"),
    "tasks.code_contests": ("path", "split"),
    "swarm": ("name", "bootnodes", "listen", "announce", "banned_peers", "identity_path"),
    "ledger": ("path", "keystore", "login_dir", "contract_address", "account_address"),
    "market": ("contract_address", "max_bet"),
    "push": ("repo",),
    "tracking": ("log_dir", "level", "prometheus_host"),
}
"""The texts that are listed: the last parts of their names, by the sections before."""
URLS = frozenset(("ledger.rpc_url", "ledger.proxy_url", "evaluator.url", "proposer.url", "judge.url", "push.endpoint"))
"""The settings of which only scheme, host and port come in: user, path and query of a URL may hold a key."""


def value(name: str, value: Any) -> Any:
    """Returns the part of a setting's value that may be shown: all, the server of a URL, or a placeholder."""
    section, _, last = name.rpartition(".")
    is_text = value not in (None, "", []) and not isinstance(value, bool | int | float | Enum)
    if last in _TEXTS.get(section, ()) or not is_text:
        return value
    return _server(str(value)) if name in URLS else SET


def settings(text: str, config: NodeConfig) -> str:
    """Returns a JSON object of settings without those that the configuration does not have, each value as `value` shows
    it. Raises ValueError: the text is not a JSON object."""
    known = leaves(config)
    return _dumped({name: value(name, found) for name, found in _object(text).items() if name in known})


def record(text: str, kind: type) -> str:
    """Returns a JSON object with only the fields of the dataclass. Raises ValueError: the text is not a JSON object."""
    names = {field.name for field in dataclasses.fields(kind)}
    return _dumped({name: value for name, value in _object(text).items() if name in names})


def records(text: str, kind: type) -> str:
    """Applies `record` to each line. A line that is not a JSON object becomes an empty one, so that the count stays."""
    lines = []
    for line in text.splitlines():
        try:
            lines.append(record(line, kind))
        except ValueError:
            lines.append("{}")
    return "\n".join(lines) + "\n"


def _server(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return SET
    more = f"/{SET}" if parts.path.strip("/") or parts.query else ""
    return f"{parts.scheme}://{host}{port}{more}" if host else SET


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object")
    return found


def _dumped(found: dict[str, Any]) -> str:
    return json.dumps(found, ensure_ascii=False)  # an escaped character would hide what stands around it
