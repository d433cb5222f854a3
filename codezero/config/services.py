"""Settings of the network's judge service and of its prediction market."""

from __future__ import annotations

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
