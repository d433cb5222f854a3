"""Builds the judge service's examination and the prediction market's player, where the configuration enables them.

Each has its own thread, from which it asks the policy between the stages of a round. No round waits for their servers,
and none fails because of them. A node that takes part in neither does not import them.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from codezero.config import LedgerKind, NodeConfig
from codezero.errors import ConfigError
from codezero.ledger.items import LedgerScope
from codezero.llm.load import LoadedModel
from codezero.policy.asked import AskedPolicy
from codezero.runtime.console import Console
from codezero.types import RoundReport

if TYPE_CHECKING:
    from codezero.services.judge.client import JudgeService
    from codezero.services.judge.examination import Examination
    from codezero.services.market.backend import MarketBackend
    from codezero.services.market.book import Book
    from codezero.services.market.player import Player
    from codezero.services.market.stakes import Stakes


class Services:
    """The services that a node takes part in. No server is asked before `start`."""

    def __init__(self, config: NodeConfig, key: bytes | None, folder: Path, peer_id: str, console: Console) -> None:
        """`key` is from `load_key`. Raises ConfigError, JudgeServiceError or LedgerError: a setting is impossible."""
        self._config, self._folder, self._peer_id = config, folder, peer_id
        self._judge: JudgeService | None = None
        self._market: _Market | None = None
        self._examination: Examination | None = None
        self._player: Player | None = None
        if config.judge.enabled or config.market.enabled:
            from codezero.services.judge.client import JudgeService

            self._judge = JudgeService(config.judge.url, timeout_s=config.judge.timeout_s)
        if config.judge.enabled:
            console.line(f"judge service: a question a round from {config.judge.url}")
        if config.market.enabled:
            self._market = _make_market(config, key, folder, peer_id)
            console.line(f"market: {self._market.address} on chain {config.ledger.chain_id}, {self._market.how_much()}")

    def start(self, policy: LoadedModel, turn: threading.Lock, stack: ExitStack) -> None:
        """Runs the services until `stack` is closed. `turn` is the lock for computing with the policy."""
        if self._judge is None:
            return
        config = self._config
        asked = AskedPolicy(policy, turn, max_new_tokens=config.rollout.max_new_tokens)
        if config.judge.enabled:
            from codezero.services.judge.examination import Examination

            self._examination = Examination(
                self._judge,
                asked,
                peer_id=self._peer_id,
                model_name=config.model.name,
                notes=self._folder / "examined",
            )
            self._examination.start()
            stack.callback(self._examination.stop)
        if self._market is not None:
            from codezero.services.market.player import Player

            log_dir = Path(config.tracking.log_dir).expanduser()
            market = self._market
            self._player = Player(
                self._judge,
                market.backend,
                asked,
                market.book,
                market.stakes,
                peer_id=self._peer_id,
                log_dir=log_dir,
            )
            self._player.start()
            stack.callback(self._player.stop)
        stack.callback(asked.close)

    def begin(self, round_number: int) -> None:
        """Starts this round's examination by the judge service. Returns at once."""
        if self._examination is not None:
            self._examination.begin(round_number)

    def report(self, report: RoundReport) -> RoundReport:
        """Returns the report with the latest score and the services' troubles."""
        if self._examination is not None:
            score = self._examination.take_score()
            report = replace(report, judge_score=score, judge=self._examination.trouble)
        return report if self._player is None else replace(report, market=self._player.trouble)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Market:
    address: str
    backend: MarketBackend
    book: Book
    stakes: Stakes

    def how_much(self) -> str:
        from codezero.services.market.stakes import shown

        most = "" if self.stakes.most is None else f", {shown(self.stakes.most)} tokens a bet at most"
        return f"bets {float(self.stakes.fraction):.0%} of the tokens held over a game's rounds{most}"


def _make_market(config: NodeConfig, key: bytes | None, folder: Path, peer_id: str) -> _Market:
    from codezero.services.market.book import Book
    from codezero.services.market.stakes import stakes

    try:
        limits = stakes(config.market.fraction, config.market.max_bet)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    backend, address = _connected(config, key, peer_id)
    book = Book(folder, LedgerScope(chain_id=config.ledger.chain_id, contract=address, peer_id=peer_id))
    return _Market(address=address, backend=backend, book=book, stakes=limits)


def _connected(config: NodeConfig, key: bytes | None, peer_id: str) -> tuple[MarketBackend, str]:
    """Returns the market as the ledger's account uses it, and its checksummed address."""
    ledger = config.ledger
    # Imported here, since a node without a chain does not need these.
    if ledger.kind is LedgerKind.modal:
        from codezero.services.market import modal

        through_app = modal.connect(
            rpc_url=ledger.rpc_url,
            chain_id=ledger.chain_id,
            contract_address=config.market.contract_address,
            proxy_url=ledger.proxy_url,
            org_id=ledger.org_id,
            account_address=ledger.account_address,
            login_dir=Path(ledger.login_dir).expanduser(),
            peer_id=peer_id,
        )
        return through_app, through_app.address
    from codezero.services.market import wallet

    assert key is not None
    signed = wallet.connect(
        rpc_url=ledger.rpc_url,
        chain_id=ledger.chain_id,
        contract_address=config.market.contract_address,
        key=key,
        max_fee_gwei=ledger.max_fee_gwei,
        peer_id=peer_id,
    )
    return signed, signed.address
