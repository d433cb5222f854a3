"""The hub's token: taken out of the environment before anything else is started, and from then on in memory only."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from pathlib import Path

from codezero.config import PushConfig
from codezero.errors import ConfigError

PUSH_ENV = "HUGGINGFACE_ACCESS_TOKEN"
DOWNLOAD_ENVS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
"""The names that the hub's own library knows."""
TOKEN_ENVS = (PUSH_ENV, *DOWNLOAD_ENVS)
_MAX_CHARACTERS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class HubTokens:
    push: str = field(default="", repr=False)
    """Empty where nothing is pushed."""
    download: str | None = field(default=None, repr=False)
    """What the hub's library would have found in the environment, for gated models."""


def take_tokens(config: PushConfig, environment: MutableMapping[str, str]) -> HubTokens:
    """The tokens, which `environment` then has no more, whether anything is pushed or not.

    Raises ConfigError: something is to be pushed and there is no token, or one that cannot be.
    """
    found = {name: environment.pop(name, "").strip() for name in TOKEN_ENVS}
    found = {name: token for name, token in found.items() if token and token.lower() != "none"}
    download = next((found[name] for name in DOWNLOAD_ENVS if name in found), None)
    if not config.enabled:
        return HubTokens(download=download)
    if config.token_file:
        source, token = f"push.token_file={config.token_file}", _read(Path(config.token_file).expanduser())
    else:
        source, token = next(iter(found.items()), ("", ""))
    if not token:
        raise ConfigError(
            f"push.enabled=true needs a token of the hub that may write: give it in {PUSH_ENV}, or a file that holds "
            "it in push.token_file"
        )
    if len(token) > _MAX_CHARACTERS or any(not "!" <= character <= "~" for character in token):
        raise ConfigError(f"{source} holds no token of the hub: it is one word of letters, digits and signs")
    return HubTokens(push=token, download=download)


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(_MAX_CHARACTERS + 2).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(f"cannot read push.token_file={path}: {reason}") from error
