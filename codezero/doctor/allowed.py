"""What of a node's settings and records may come into a support archive: the fields that are named here, and no others.

Numbers, switches and choices tell no secret. A text may: of the settings only those listed come in, of records only the
fields that their type has today.
"""

from __future__ import annotations

import dataclasses
import json
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from codezero.config import NodeConfig
from codezero.config.load import leaves

SET = "[set]"
"""Stands for a text that is none of the listed."""
_TEXTS = frozenset(
    (
        *("state_dir", "model.name", "model.cache_dir", "evaluator.model", "proposer.model"),
        *("tasks.mbpp.path", "tasks.mbpp.split", "tasks.code_contests.path", "tasks.code_contests.split"),
        *("swarm.name", "swarm.bootnodes", "swarm.listen", "swarm.announce", "swarm.banned_peers"),
        *("swarm.identity_path", "ledger.path", "ledger.keystore", "ledger.login_dir", "ledger.contract_address"),
        *("ledger.account_address", "market.contract_address", "market.max_bet", "push.repo"),
        *("evaluator.api_key_env", "proposer.api_key_env"),
        *("tracking.log_dir", "tracking.level", "tracking.prometheus_host"),
    )
)
_URLS = frozenset(("ledger.rpc_url", "ledger.proxy_url", "evaluator.url", "proposer.url", "judge.url", "push.endpoint"))
"""Of these the server alone comes in: what follows, or stands before it, may be a key."""


def value(name: str, value: Any) -> Any:
    """What may be shown of a setting."""
    if name in _TEXTS or value is None or value in ("", []) or isinstance(value, bool | int | float | Enum):
        return value
    return _server(str(value)) if name in _URLS else SET


def settings(text: str, config: NodeConfig) -> str:
    """Of a JSON object of settings those that a configuration has. Raises ValueError: it is none."""
    known = leaves(config)
    return _dumped({name: value(name, found) for name, found in _object(text).items() if name in known})


def record(text: str, kind: type) -> str:
    """Of a JSON object those fields that the dataclass has. Raises ValueError: it is none."""
    names = {field.name for field in dataclasses.fields(kind)}
    return _dumped({name: value for name, value in _object(text).items() if name in names})


def records(text: str, kind: type) -> str:
    """The same for each line; a line that is no object comes to an empty one, so that they can be counted."""
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
        raise ValueError("it is no JSON object")
    return found


def _dumped(found: dict[str, Any]) -> str:
    return json.dumps(found, ensure_ascii=False)  # an escaped character would hide what stands around it
