"""The judge service and the prediction market, as far as the configuration has a node take part in them.

Each has a thread of its own, from which it asks the policy between the stages of a round. No round waits for their
servers, and none fails by them.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from codezero.config import LedgerKind, NodeConfig
from codezero.errors import ConfigError
from codezero.judge.client import JudgeService
from codezero.judge.examination import Examination
from codezero.ledger.items import Scope
from codezero.market.backend import Backend
from codezero.market.book import Book
from codezero.market.player import Player
from codezero.market.stakes import Stakes, shown, stakes
from codezero.models import Models
from codezero.observe.console import Console
from codezero.rollout.asked import AskedPolicy
from codezero.types import RoundReport


class Services:
    """What runs of them, until `stack` is closed."""

    def __init__(
        self,
        config: NodeConfig,
        key: bytes | None,
        models: Models,
        folder: Path,
        peer_id: str,
        console: Console,
        stack: ExitStack,
    ) -> None:
        """`key` is that of `ledgers.load_key`; the ledger must have been started, so that the peer gets registered.

        Raises ConfigError, JudgeServiceError or LedgerError: a setting of theirs cannot be.
        """
        self._examination: Examination | None = None
        self._player: Player | None = None
        if not (config.judge.enabled or config.market.enabled):
            return
        asked = AskedPolicy(models.policy, models.turn, max_new_tokens=config.rollout.max_new_tokens)
        if config.judge.enabled:
            service = JudgeService(config.judge.url, timeout_s=config.judge.timeout_s)
            self._examination = Examination(service, asked, peer_id=peer_id, model_name=config.model.name)
            self._examination.start()
            stack.callback(self._examination.stop)
            console.line(f"judge service: a question a round from {config.judge.url}")
        if config.market.enabled:
            self._player = _make_player(config, key, asked, folder, peer_id, console)
            self._player.start()
            stack.callback(self._player.stop)
        stack.callback(asked.close)

    def begin(self, round_number: int) -> None:
        """Has the policy examined in this round. Returns at once."""
        if self._examination is not None:
            self._examination.begin(round_number)

    def report(self, report: RoundReport) -> RoundReport:
        """The report with what there is to say of them."""
        if self._examination is not None:
            score = self._examination.take_score()
            value = None if score is None else score.score
            report = replace(report, judge_score=value, judge=self._examination.trouble)
        return report if self._player is None else replace(report, market=self._player.trouble)


def _make_player(
    config: NodeConfig, key: bytes | None, asked: AskedPolicy, folder: Path, peer_id: str, console: Console
) -> Player:
    try:
        limits = stakes(config.market.fraction, config.market.max_bet)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    backend, address = _connected(config, key, peer_id)
    console.line(f"market: {address} on chain {config.ledger.chain_id}, {_how_much(limits)}")
    return Player(
        JudgeService(config.judge.url, timeout_s=config.judge.timeout_s),
        backend,
        asked,
        Book(folder, Scope(chain_id=config.ledger.chain_id, contract=address, peer_id=peer_id)),
        limits,
        peer_id=peer_id,
        log_dir=Path(config.tracking.log_dir).expanduser(),
    )


def _connected(config: NodeConfig, key: bytes | None, peer_id: str) -> tuple[Backend, str]:
    """The market through the ledger's account, and its checksummed address."""
    ledger = config.ledger
    # Only here: these import what a node without a chain does not need.
    if ledger.kind is LedgerKind.modal:
        from codezero.market import modal

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
    from codezero.market import wallet

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


def _how_much(limits: Stakes) -> str:
    most = "" if limits.most is None else f", {shown(limits.most)} tokens a bet at most"
    return f"bets {float(limits.fraction):.0%} of the tokens held over a game's rounds{most}"
