"""Pushes the model when it is due, and again later where that fails, in its own thread, one push at a time.

No round waits for a push, and none fails because of one. The last push is noted in a file, so that neither a stop nor a
kill restarts the interval: a push that was interrupted is made with the next round.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from codezero.config import PushConfig, PushedCheckpoint
from codezero.errors import CodezeroError, Stopping
from codezero.publish.card import card
from codezero.publish.hub import Hub, UploadResult
from codezero.publish.pack import Packer
from codezero.reports import RoundReport
from codezero.runtime.files import replace_file, stored
from codezero.runtime.worker import Worker

CARD_ROUNDS = 20
"""The largest number of rounds in the card's means."""
FIRST_PAUSE_S, MAX_PAUSE_S = 60.0, 3600.0
"""The first and the longest wait between attempts, in seconds, if the hub does not say how long; each is doubled."""
MAX_ASKED_S = 24 * 3600.0
"""The longest wait that a hub may ask for, in seconds."""
ATTEMPTS = 6
"""The number of attempts at one push, which keep its files; after them the next round is pushed."""
_REFUSED = (401, 403)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """The last push, as the file has it."""

    repo: str
    round: int
    policy_version: int
    at_s: float
    """The Unix time of the push."""
    url: str
    endpoint: str = ""
    """`push.endpoint`; empty in a file of 0.1.0, which counts as the present one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offer:
    checkpoint: Path
    reports: tuple[RoundReport, ...]

    @property
    def report(self) -> RoundReport:
        return self.reports[-1]


class Publisher:
    """The publisher of one node. All methods return at once, `stop` within a few seconds."""

    def __init__(
        self,
        config: PushConfig,
        hub: Hub,
        packer: Packer,
        notes: Path,
        tell: Callable[[str, str], None],
    ) -> None:
        """`notes` is the file with the last push. `tell` is called with `last` and the reason why the last push failed
        (empty if it succeeded, partly untrusted text), now and whenever they change."""
        self._config, self._hub, self._packer, self._notes = config, hub, packer, notes
        self._worker = Worker("push", self._work)
        self._lock = threading.Lock()
        self._reports: deque[RoundReport] = deque(maxlen=CARD_ROUNDS)
        self._offer: _Offer | None = None
        self._repo = config.repo or packer.facts.repository
        self._pushed = stored(notes, Pushed)  # a damaged file costs one needless push
        if self._pushed is not None and not self._was_here(self._pushed):
            self._pushed = None
        self._paused_s = 0.0, 0.0  # from when and until when nothing is tried
        self._is_refused = False
        self._warned: set[str] = set()
        self._tell = tell
        self.last = "" if self._pushed is None else f"round {self._pushed.round}: {self._pushed.url}"
        """The round and URL of the last push; empty before the first."""
        tell(self.last, "")

    def _was_here(self, pushed: Pushed) -> bool:
        """Returns True for a push to the repository and the hub of the configuration."""
        is_hub = pushed.endpoint in ("", self._config.endpoint)
        return is_hub and f"/{pushed.repo}".endswith(f"/{self._repo}")

    def start(self) -> None:
        self._worker.start()

    def note(self, report: RoundReport) -> None:
        """Adds a finished round's report, for the card."""
        with self._lock:
            self._reports.append(report)

    def offer(self, number: int, newest: Path, best: Path | None = None) -> None:
        """Offers the checkpoint of a round whose report was noted; `best` is its path as the best checkpoint, if it was
        kept as such. It is read only if this kind of checkpoint is pushed and a push is due."""
        checkpoint = best if self._config.checkpoint is PushedCheckpoint.best else newest
        with self._lock:
            reports = tuple(report for report in self._reports if report.round <= number)
            # Without an update many rounds end while one is saved, whose report then is none of the kept ones.
            if checkpoint is not None and reports:
                self._offer = _Offer(checkpoint=checkpoint, reports=reports)
        self._worker.wake()  # an earlier offer may be due by now

    def stop(self, timeout_s: float = 3.0) -> None:
        """Stops the thread and an upload under way; after the next start the next round is pushed in its place."""
        self._worker.ask_to_stop()
        self._hub.stop()
        self._worker.stop(timeout_s)
        if not self._worker.is_alive:  # else it may be writing the files, which the next start removes
            self._packer.close()

    def _work(self) -> None:
        """Pushes the offered round if that is due."""
        with self._lock:
            if self._worker.is_stopping or self._is_refused or self._offer is None or not self._is_due(self._offer):
                return
            offer, self._offer = self._offer, None
        self._push(offer)
        was_pushed = self._pushed is not None and self._pushed.round == offer.report.round
        if self._config.checkpoint is PushedCheckpoint.best and not was_pushed:
            with self._lock:
                self._offer = self._offer or offer  # a better one may be long in coming

    def _is_due(self, offer: _Offer) -> bool:
        now_s, last, report = time.time(), self._pushed, offer.report
        if report.policy_version == 0 or self._paused_s[0] <= now_s < self._paused_s[1]:
            return False
        # Numbers go backwards if the state was begun anew, or the clock was set back.
        if last is None or report.round < last.round or now_s < last.at_s:
            return True
        if report.policy_version == last.policy_version:
            return False
        config = self._config
        by_rounds = config.every_rounds > 0 and report.round - last.round >= config.every_rounds
        return by_rounds or (config.every_hours > 0 and now_s - last.at_s >= config.every_hours * 3600)

    def _wait(self, seconds: float) -> None:
        now_s = time.time()
        self._paused_s = now_s, now_s + seconds

    def _push(self, offer: _Offer) -> None:
        try:
            folder = self._packer.pack(offer.checkpoint)
            for attempt in range(ATTEMPTS):
                answer = self._hub.push(folder, self._repo, card(self._packer.facts, offer.reports), _message(offer))
                self._repo = answer.repo
                if answer.url:
                    self._note(offer, answer)
                    return
                pause_s = self._after(answer, attempt)
                if pause_s is None:
                    return
                self._worker.pause(pause_s)
        except Stopping:
            raise
        except CodezeroError as error:
            self._warn(type(error).__name__, str(error))
            self._wait(MAX_PAUSE_S)
        except Exception:  # the thread's boundary: whatever breaks in here must not end the node's training
            logger.exception("the push of round %d failed", offer.report.round)
            self._warn("internal", "push: internal error, see the log: please report it")
            self._wait(MAX_PAUSE_S)
        finally:
            self._packer.clear()

    def _after(self, answer: UploadResult, attempt: int) -> float | None:
        """Warns of a failed upload; returns the seconds until the same files are tried again, None to give them up."""
        said = f" ({answer.detail})" if answer.detail else ""
        # By 403 the hub also refuses what an account has no room for (huggingface_hub issues 3049 and 3366).
        if answer.status in _REFUSED and "storage" not in answer.detail:
            self._is_refused = True
            self._warn(
                "refused",
                f"push: the hub refuses the token for {answer.repo}, HTTP {answer.status}{said}: make one that may "
                "write at https://huggingface.co/settings/tokens and start again; nothing is pushed until then",
            )
            return None
        if answer.status is not None and answer.status < 500 and answer.status not in (408, 429):
            self._warn("rejected", f"push: the hub does not take it, HTTP {answer.status}{said}; tried again in 1 hour")
            self._wait(MAX_PAUSE_S)
            return None
        # Jitter, so that nodes that were refused together do not come back together.
        pause_s = min(FIRST_PAUSE_S * 2.0**attempt, MAX_PAUSE_S) * random.uniform(0.75, 1.25)
        if answer.wait_s is not None:
            pause_s = min(answer.wait_s, MAX_ASKED_S) + random.uniform(0, 5)
        what = f"HTTP {answer.status}" if answer.status is not None else "no answer"
        busy = "the hub is busy or limits us" if answer.status == 429 else "the hub cannot be reached or used now"
        self._warn(
            "limited" if answer.status == 429 else "unreachable",
            f"push: {busy}, {what}{said}; tried again in {pause_s / 60:.0f} minutes, training continues",
        )
        if attempt == ATTEMPTS - 1:
            self._wait(pause_s)
            return None
        return pause_s

    def _note(self, offer: _Offer, answer: UploadResult) -> None:
        report = offer.report
        self._pushed = Pushed(
            repo=answer.repo,
            round=report.round,
            policy_version=report.policy_version,
            at_s=time.time(),
            url=answer.url,
            endpoint=self._config.endpoint,
        )
        self.last = f"round {report.round}: {answer.url}"
        self._tell(self.last, "")
        logger.info("round %d pushed: %s", report.round, answer.url)
        try:
            replace_file(self._notes, msgspec.json.encode(self._pushed) + b"\n")
        except OSError as error:
            self._warn(
                "notes",
                f"push: {self._notes} cannot be written, {error.strerror}: a restart will push again; free space",
            )

    def _warn(self, kind: str, text: str) -> None:
        """Notes a problem; logs each kind as a warning the first time, as information afterwards."""
        self._tell(self.last, text)
        level = logging.INFO if kind in self._warned else logging.WARNING
        self._warned.add(kind)
        logger.log(level, "%s", text)


def _message(offer: _Offer) -> str:
    return f"Round {offer.report.round}, policy version {offer.report.policy_version}"
