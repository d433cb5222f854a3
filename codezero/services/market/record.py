"""Writes `prg_record.txt`: bets that the contract has, and rewards that were claimed."""

from __future__ import annotations

import logging
from pathlib import Path

from codezero.ledger.items import LedgerItem
from codezero.runtime import rotation
from codezero.runtime.console import printable
from codezero.services.market.book import Bet
from codezero.services.market.stakes import shown

logger = logging.getLogger(__name__)


class BetRecord:
    """Appends lines to one file. A line that cannot be written is lost, with a warning."""

    def __init__(self, path: Path, peer_id: str) -> None:
        self._path, self._peer_id = path, peer_id

    def placed(self, item: LedgerItem, bet: Bet) -> None:
        self._add(
            f"Game {item.round_id.number} Round {item.round_id.stage}: Peer {self._peer_id} placed bet of "
            f"{shown(bet.amount)} tokens on choice - {bet.text}"
        )

    def claimed(self, game: int) -> None:
        self._add(f"successfully claimed reward for previous game {game}")

    def _add(self, line: str) -> None:
        line = printable(line).replace("\n", "\\n")
        logger.info("%s", line)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            rotation.rotate(self._path)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            logger.warning(
                "cannot write %s (%s): free space; the bet itself is not affected, and is in swarm.log too",
                self._path,
                error.strerror,
            )
