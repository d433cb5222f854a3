"""The messages between a trainer and a rollout server, over HTTP with the token of the server's rollout file.

    GET  /v1/status                                                     -> ServerStatus
    PUT  /v1/weights    a file of `snapshots`                           -> ServerStatus; 409: send all weights
    POST /v1/rollouts   RolloutRequest -> lines: `llm.replies`, a last one; 409: other weights are in use

A server changes its weights between two requests only, so all tokens of a reply are from the version that it names.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from codezero.config.solver import MOST_TEMPERATURE

VERSION = 1
STATUS, WEIGHTS, ROLLOUTS = "/v1/status", "/v1/weights", "/v1/rollouts"
MAX_ROWS = 1024
"""The most completions of a request."""
MAX_REQUEST_BYTES = 16 << 20
HEARTBEAT_S = 5.0
"""The longest time without a line from a server that waits for its turn or reads prompts, in seconds."""

_Id = Annotated[int, Meta(ge=0, lt=1 << 24)]
_Name = Annotated[str, Meta(max_length=200)]


class ServerStatus(msgspec.Struct, kw_only=True):
    version: int
    """The version of this protocol."""
    model: _Name
    base: _Name
    """The name of the weights that the server's model was loaded with (`snapshots.fingerprint`)."""
    weights: _Name
    """The name of the weights in use."""
    engine: _Name
    busy_s: float
    """Seconds spent on sampling and on taking over weights, since it started."""
    up_s: float
    is_busy: bool = False
    """True while it samples or takes over weights."""


class RolloutRequest(msgspec.Struct, kw_only=True):
    weights: _Name
    """The name of the weights to sample with."""
    prompts: Annotated[list[Annotated[list[_Id], Meta(min_length=1)]], Meta(min_length=1, max_length=MAX_ROWS)]
    num_generations: Annotated[int, Meta(ge=1, le=MAX_ROWS)]
    max_new_tokens: Annotated[int, Meta(ge=1, le=1 << 17)]
    temperature: Annotated[float, Meta(ge=0, le=MOST_TEMPERATURE)]
    top_p: Annotated[float, Meta(gt=0, le=1)]
    top_k: Annotated[int, Meta(ge=0, le=1 << 24)]
    end_ids: Annotated[list[_Id], Meta(max_length=1024)]
    pad_id: _Id
    seed: Annotated[int, Meta(ge=0, le=(1 << 62) - 1)]
