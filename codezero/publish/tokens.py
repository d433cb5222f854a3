"""Takes the hub's tokens out of the environment before any program is started; from then on they are only in memory."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from pathlib import Path

from codezero.config import PASSPHRASE_ENV, PushConfig
from codezero.errors import ConfigError

PUSH_ENV = "HUGGINGFACE_ACCESS_TOKEN"
DOWNLOAD_ENVS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
"""The environment variables that the hub's own library reads."""
TOKEN_ENVS = (PUSH_ENV, *DOWNLOAD_ENVS)
OF_SOLVERS = (PUSH_ENV, PASSPHRASE_ENV)
"""The environment variables with secrets that only solvers need."""
_MAX_CHARACTERS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class HubTokens:
    """The tokens of the Hugging Face hub."""

    push: str = field(default="", repr=False)
    """The token for pushing; empty if pushing is off."""
    download: str | None = field(default=None, repr=False)
    """The token for gated models that the hub's library would have found in the environment."""


def take_tokens(config: PushConfig, environment: MutableMapping[str, str]) -> HubTokens:
    """Returns the tokens and removes them from `environment`, whether pushing is on or not.

    Raises ConfigError: pushing is on, and there is no token, or an invalid one.
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


def forget_secrets(environment: MutableMapping[str, str]) -> None:
    """Removes the secrets that only a solver needs, once it has taken them: programs that it starts would inherit
    them."""
    for name in OF_SOLVERS:
        environment.pop(name, None)


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(_MAX_CHARACTERS + 2).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"cannot read push.token_file={path}: {reason}") from error
