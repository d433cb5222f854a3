"""Settings of the network's judge service, of its prediction market, and of publishing the model."""

from __future__ import annotations

import re
from dataclasses import dataclass

from codezero.config.check import require


@dataclass
class JudgeConfig:
    enabled: bool = False
    """Have the judge service ask the policy a question each round; its score is in the round's report. Nothing else
    depends on it, and evaluator.* is not about it."""
    url: str = "https://codezero-judge.gensyn.ai"
    """The judge service, which also shows the clues of the prediction market."""
    timeout_s: float = 10.0
    """Longest wait for an answer of the service; no round waits for it."""

    def __post_init__(self) -> None:
        require(self.url != "", "judge.url", "''", "give the service, such as http://127.0.0.1:8000")
        require(self.timeout_s > 0, "judge.timeout_s", self.timeout_s, "use 10")


@dataclass
class MarketConfig:
    enabled: bool = False
    """Bet tokens of the prediction market on what the policy finds likeliest; needs ledger=wallet or ledger=modal."""
    contract_address: str = ""
    """The market's contract, on the ledger's chain: 0x and 40 hex digits."""
    fraction: float = 0.25
    """Share of the tokens held that is bet, spread over the rounds that a game has left."""
    max_bet: str = ""
    """Most tokens of one bet, such as 2.5; empty sets no cap."""

    def __post_init__(self) -> None:
        address = self.contract_address
        given = (address.startswith("0x") and len(address) == 42) or (not address and not self.enabled)
        require(given, "market.contract_address", address or "''", "give the market's contract: 0x and 40 hex digits")
        require(0 <= self.fraction <= 1, "market.fraction", self.fraction, "use a share from 0 to 1, such as 0.25")


@dataclass
class PushConfig:
    enabled: bool = False
    """Push the model to the Hugging Face hub, in the background: the whole model, or the adapter where train.method is
    lora. The token comes from HUGGINGFACE_ACCESS_TOKEN or HF_TOKEN, or from push.token_file."""
    every_hours: float = 6.0
    """Push when so many hours have passed since the last push; 0 leaves it to every_rounds. The first push comes with
    the first round that changed the model."""
    every_rounds: int = 0
    """Push when so many rounds have passed since the last push, whichever of the two comes first; 0 leaves it to
    every_hours."""
    repo: str = ""
    """Repository of this node alone, such as me/my-model; empty: MODEL-Gensyn-Swarm-NAME, of the token's user."""
    private: bool = False
    """Make a new repository private; one that is there stays as it is."""
    token_file: str = ""
    """File that holds the token, in place of the environment."""
    endpoint: str = "https://huggingface.co"
    """The hub that gets the model and the token. HF_ENDPOINT, which may name a mirror for downloads, is not asked."""

    def __post_init__(self) -> None:
        require(self.every_hours >= 0, "push.every_hours", self.every_hours, "use 0 or more, such as 6")
        require(self.every_rounds >= 0, "push.every_rounds", self.every_rounds, "use 0 or more, such as 50")
        due = self.every_hours > 0 or self.every_rounds > 0
        require(due, "push.every_hours", "0 with push.every_rounds=0", "set one of them, or push.enabled=false")
        is_repo = re.fullmatch(r"([\w.-]+/)?[\w.-]{1,96}", self.repo, re.ASCII) is not None
        require(self.repo == "" or is_repo, "push.repo", self.repo, "use NAME or OWNER/NAME")
        # The token travels with every request.
        secret = re.match(r"https://|http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?(/|$)", self.endpoint) is not None
        require(secret, "push.endpoint", self.endpoint, "use an address with https://")
