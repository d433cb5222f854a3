"""Datasets streamed from the Hugging Face hub, with a limit in seconds on everything that waits for the network.

The hub's own libraries retry for minutes before they give up (23 s for one name that does not resolve), and their
retries cannot be set. So the hub is asked once whether it is there before anything else is tried, and every later call
has a deadline. Both libraries are imported only here and only when needed: `datasets` alone takes over a second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from codezero.errors import TaskError

PROBE_LIMIT_S = 5.0
"""For the hub to answer at all."""
OPEN_LIMIT_S = 60.0
"""For finding a dataset's files."""
ROW_LIMIT_S = 180.0
"""For the next row: the first one waits until the shuffle buffer is full."""

SHUFFLE_BUFFER_ROWS = 1000
"""Rows held to draw from, about 3 MB of text; more than MBPP has, about a thirteenth of CodeContests."""

_End = type("_End", (), {})
Result = TypeVar("Result")


class HubUnreachable(TaskError):
    """The hub, or a dataset on it, cannot be had now; the built-in problems may stand in."""


def check_reachable(limit_s: float = PROBE_LIMIT_S) -> None:
    """Asks the hub for its front page, once. Any answer will do. Raises HubUnreachable within about `limit_s`."""
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    within(limit_s, f"asking {constants.ENDPOINT}", lambda: get_session().head(constants.ENDPOINT, timeout=limit_s))


def open_dataset(hub_id: str, split: str, columns: Sequence[str], seed: int) -> Callable[[int], Iterator[object]]:
    """A function that gives the rows of an epoch (0, 1, …) in that epoch's order, the same one whenever it is asked.

    Files are shuffled, then rows within a buffer. The order holds for one version of the files and of `datasets`.

    Raises HubUnreachable: offline mode, no such dataset or split, or no answer within OPEN_LIMIT_S.
    """

    def load() -> Any:
        from datasets import load_dataset

        dataset = load_dataset(hub_id, split=split, streaming=True, columns=list(columns))
        return dataset.shuffle(seed=seed, buffer_size=SHUFFLE_BUFFER_ROWS)

    dataset = within(OPEN_LIMIT_S, f"opening {hub_id}", load)

    def rows_of_epoch(epoch: int) -> Iterator[object]:
        dataset.set_epoch(epoch)
        return _limited(iter(dataset), f"reading {hub_id}")

    return rows_of_epoch


def _limited(rows: Iterator[object], doing: str) -> Iterator[object]:
    while True:
        row = within(ROW_LIMIT_S, doing, lambda: next(rows, _End))
        if row is _End:
            return
        yield row


def within(limit_s: float, doing: str, call: Callable[[], Result]) -> Result:
    """What `call` returns, if it does so in `limit_s` seconds.

    Raises HubUnreachable: it raised anything, or took longer; then its thread is left behind to end with the process.
    """
    results: list[Result] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            results.append(call())
        except Exception as error:
            # Errors of httpx, fsspec, pyarrow, datasets and the hub client come through here; all mean "no rows".
            errors.append(error)

    # A thread, because a name server that never answers heeds no timeout; a daemon, so that it cannot hold up the exit.
    thread = threading.Thread(target=work, daemon=True, name="codezero-hub")
    thread.start()
    thread.join(limit_s)
    if results:
        return results[0]
    if errors:
        reason = (str(errors[0]).splitlines() or [""])[0]
        raise HubUnreachable(f"{doing} failed ({type(errors[0]).__name__}: {reason})") from errors[0]
    raise HubUnreachable(f"{doing} took longer than {limit_s:g} s")
