"""Builds the judge service's examination and the prediction market's player, where the configuration enables them.

Each has its own thread, from which it asks the policy between the stages of a round. No round waits for their servers,
and none fails because of them. A node that takes part in neither does not import them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from codezero.config import NodeConfig
from codezero.ledger.items import LedgerScope
from codezero.llm.load import LoadedModel
from codezero.policy.query import QueryPolicy
from codezero.reports import RoundReport
from codezero.runtime.console import Console

if TYPE_CHECKING:
    from codezero.ledger.chain import ChainLedger
    from codezero.ledger.local import LocalLedger
    from codezero.ledger.submitter import Submitter
    from codezero.services.judge.client import JudgeService
    from codezero.services.judge.examination import Examination
    from codezero.services.market.player import Player


class Services:
    """The services that a node takes part in. No server is asked before `start`."""

    def __init__(
        self, config: NodeConfig, ledger: LocalLedger | ChainLedger, folder: Path, peer_id: str, console: Console
    ) -> None:
        """`ledger` is the node's. Raises ConfigError, JudgeServiceError or LedgerError: a setting is impossible."""
        self._config, self._folder, self._peer_id = config, folder, peer_id
        self._judge: JudgeService | None = None
        self._make_player: Callable[[QueryPolicy], Player] | None = None
        self._examination: Examination | None = None
        self._player: Player | None = None
        if not (config.judge.enabled or config.market.enabled):
            return
        from codezero.services.judge.client import JudgeService

        self._judge = judge = JudgeService(config.judge.url, timeout_s=config.judge.timeout_s)
        if config.judge.enabled:
            console.line(f"judge service: a question a round from {config.judge.url}")
        if config.market.enabled:
            submitter = cast("ChainLedger", ledger).submitter  # the settings have no market without a chain
            self._make_player = self._open_market(judge, submitter, console)

    def start(self, policy: LoadedModel, policy_lock: threading.Lock, stack: ExitStack) -> None:
        """Runs the services until `stack` is closed. `policy_lock` is held while something is computed with it."""
        if self._judge is None:
            return
        config = self._config
        asked = QueryPolicy(policy, policy_lock, max_new_tokens=config.rollout.max_new_tokens)
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
        if self._make_player is not None:
            self._player = self._make_player(asked)
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

    def _open_market(
        self, judge: JudgeService, submitter: Submitter, console: Console
    ) -> Callable[[QueryPolicy], Player]:
        """Returns a function that makes the market's player, whose bets the submitter's thread delivers."""
        from codezero.ledger.location import OUTBOX
        from codezero.services.market.book import Book
        from codezero.services.market.contract import open_market
        from codezero.services.market.player import Player
        from codezero.services.market.stakes import shown, stakes

        config, peer_id = self._config, self._peer_id
        limits = stakes(config.market.fraction, config.market.max_bet)
        market = open_market(
            rpc_url=config.ledger.rpc_url,
            chain_id=config.ledger.chain_id,
            contract_address=config.market.contract_address,
            sender=submitter.sender,
            peer_id=peer_id,
        )
        scope = LedgerScope(chain_id=config.ledger.chain_id, contract=market.address, peer_id=peer_id)
        book = Book(self._folder / OUTBOX, scope)
        most = "" if limits.most is None else f", {shown(limits.most)} tokens a bet at most"
        console.line(
            f"market: {market.address} on chain {scope.chain_id}, bets {float(100 * limits.fraction):g}% of the tokens "
            f"held over a game's rounds{most}"
        )

        def make(policy: QueryPolicy) -> Player:
            log_dir = Path(config.tracking.log_dir).expanduser()
            player = Player(judge, market, policy, book, limits, submitter.wake, peer_id=peer_id, log_dir=log_dir)
            submitter.also(player.delivery.deliver)
            return player

        return make
