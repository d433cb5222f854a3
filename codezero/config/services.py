"""Settings of the network's judge service, of its prediction market, and of publishing the model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from codezero.config.check import require


@dataclass
class JudgeConfig:
    enabled: bool = False
    """Answer a question of the judge service each round; its score is in the round's report and affects nothing else.
    It is not the evaluator of evaluator.*."""
    url: str = "https://codezero-judge.gensyn.ai"
    """URL of the judge service, which also gives the clues of the prediction market."""
    timeout_s: float = 10.0
    """Longest wait for an answer of the service, in seconds; no round waits for it."""

    def __post_init__(self) -> None:
        require(self.url != "", "judge.url", "''", "give the service, such as http://127.0.0.1:8000")
        require(self.timeout_s > 0, "judge.timeout_s", self.timeout_s, "use 10")


@dataclass
class MarketConfig:
    enabled: bool = False
    """Bet tokens of the prediction market on the answer that the policy finds likeliest; needs ledger=wallet or
    ledger=modal."""
    contract_address: str = ""
    """The market's contract, on the ledger's chain: 0x and 40 hex digits."""
    fraction: float = 0.25
    """Share of the tokens held to bet, spread over the remaining rounds of a game."""
    max_bet: str = ""
    """Largest bet in tokens, such as 2.5; empty: no limit."""

    def __post_init__(self) -> None:
        address = self.contract_address
        given = (address.startswith("0x") and len(address) == 42) or (not address and not self.enabled)
        require(given, "market.contract_address", address or "''", "give the market's contract: 0x and 40 hex digits")
        require(0 <= self.fraction <= 1, "market.fraction", self.fraction, "use a share from 0 to 1, such as 0.25")


class PushedCheckpoint(Enum):
    newest = "newest"
    best = "best"


@dataclass
class PushConfig:
    enabled: bool = False
    """Push the model to the Hugging Face hub, in the background: the whole model, or the adapter if train.method is
    lora. The token comes from HUGGINGFACE_ACCESS_TOKEN, HF_TOKEN or HUGGING_FACE_HUB_TOKEN, or from push.token_file."""
    every_hours: float = 6.0
    """Hours between two pushes; 0 uses every_rounds alone. The first push follows the first round that changed the
    model."""
    every_rounds: int = 0
    """Rounds between two pushes, if they pass before every_hours; 0 uses every_hours alone."""
    checkpoint: PushedCheckpoint = PushedCheckpoint.newest
    """The weights to push: newest, or best, those where the node's probes were highest (probe.share above 0)."""
    repo: str = ""
    """Repository, which only this node uses, such as me/my-model; empty: MODEL-Gensyn-Swarm-NAME of the token's
    user."""
    private: bool = False
    """Create the repository as private; an existing one stays as it is."""
    token_file: str = ""
    """File with the token, used instead of the environment variables."""
    endpoint: str = "https://huggingface.co"
    """URL of the hub that gets the model and the token. HF_ENDPOINT is not used, since it may be a mirror for
    downloads."""

    def __post_init__(self) -> None:
        require(self.every_hours >= 0, "push.every_hours", self.every_hours, "use 0 or more, such as 6")
        require(self.every_rounds >= 0, "push.every_rounds", self.every_rounds, "use 0 or more, such as 50")
        due = self.every_hours > 0 or self.every_rounds > 0
        require(due, "push.every_hours", "0 with push.every_rounds=0", "set one of them, or push.enabled=false")
        # The rules of huggingface_hub.utils.validate_repo_id.
        formed = re.fullmatch(r"(\b[\w.-]{1,96}\b/)?\b[\w.-]{1,96}\b", self.repo, re.ASCII) is not None
        is_repo = formed and re.search(r"--|\.\.|\.git$", self.repo) is None
        fix = "use NAME or OWNER/NAME, neither with -- or .. in it, nor with - or . at an end, nor ending in .git"
        require(self.repo == "" or is_repo, "push.repo", self.repo, fix)
        # Every request has the token.
        secret = re.match(r"https://|http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?(/|$)", self.endpoint) is not None
        require(secret, "push.endpoint", self.endpoint, "use an address with https://")
