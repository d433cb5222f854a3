"""Datasets streamed from the Hugging Face hub, with a limit in seconds on everything that waits for the network.

The hub's own libraries retry for minutes before they give up (23 s for one name that does not resolve), and their
retries cannot be set. So a single request first checks that the hub answers, and every later call has a deadline. Both
libraries are imported only here and only when needed: `datasets` alone takes over a second.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from codezero.errors import TaskError, first_line
from codezero.runtime import proxies

PROBE_LIMIT_S = 5.0
"""Seconds to wait for any answer of the hub."""
OPEN_LIMIT_S = 60.0
"""Seconds to wait until a dataset's files are found."""
ROW_LIMIT_S = 180.0
"""Seconds to wait for the next row: the first one comes only when the shuffle buffer is full."""

SHUFFLE_BUFFER_ROWS = 1000
"""The most rows in the shuffle buffer; more than MBPP has, and about a thirteenth of CodeContests, whose statements and
public tests then come to 3 MB."""
SHUFFLE_BUFFER_BYTES = 32 << 20
"""The most bytes of text in the shuffle buffer: CodeContests with hidden tests reaches this limit first."""
READ_AHEAD_BYTES = 1 << 16
"""Bytes read beyond each wanted piece of a file; by default 5 MB, six times what a file of CodeContests has that is
wanted without hidden tests."""
BATCH_ROWS = 16
"""Rows decoded at once; by default it is a whole file, which with hidden tests is hundreds of megabytes."""

_END = object()
Result = TypeVar("Result")


class HubUnreachable(TaskError):
    """The hub, or a dataset on it, is not available now; the built-in problems may stand in."""

    may_pass = True


def check_reachable() -> None:
    """Asks the hub for its front page, once. Any answer will do. Raises HubUnreachable within about PROBE_LIMIT_S."""
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    url = constants.ENDPOINT
    within(PROBE_LIMIT_S, f"asking {url}", lambda: get_session().head(url, timeout=PROBE_LIMIT_S))


def revision_of(hub_id: str) -> str:
    """Returns the commit that a dataset is at. Raises HubUnreachable as `open_dataset` does."""
    from huggingface_hub import dataset_info

    return within(OPEN_LIMIT_S, f"asking for the revision of {hub_id}", lambda: str(dataset_info(hub_id).sha))


def open_dataset(
    hub_id: str, split: str, columns: Sequence[str], seed: int, revision: str | None = None
) -> Callable[[int], Iterator[object]]:
    """Returns a function that yields the rows of an epoch (0, 1, …) in that epoch's order, the same one at every call.

    Files are shuffled, then rows within a buffer: here and not by `datasets`, whose order differs between its versions
    and whose shuffling reads ten files at once. The order holds as long as the files on the hub stay the same. Without
    `revision` they are the newest.

    Raises HubUnreachable if offline, without such a dataset or split, or without an answer within OPEN_LIMIT_S.
    """

    def load() -> Any:
        from datasets import load_dataset

        return load_dataset(
            hub_id,
            split=split,
            revision=revision,
            streaming=True,
            columns=list(columns),
            batch_size=BATCH_ROWS,
            storage_options={"hf": {"block_size": READ_AHEAD_BYTES}},
        )

    dataset = within(OPEN_LIMIT_S, f"opening {hub_id}", load)

    def rows_of_epoch(epoch: int) -> Iterator[object]:
        rng = random.Random(f"{seed}/{hub_id}/{epoch}")
        files = sorted(range(dataset.num_shards), key=lambda _: rng.random())
        rows = itertools.chain.from_iterable(dataset.shard(len(files), index) for index in files)
        return limited(shuffled(rows, rng), f"reading {hub_id}")

    return rows_of_epoch


def shuffled(
    rows: Iterator[object],
    rng: random.Random,
    buffer_rows: int = SHUFFLE_BUFFER_ROWS,
    buffer_bytes: int = SHUFFLE_BUFFER_BYTES,
) -> Iterator[object]:
    """Yields every row once, each drawn from a buffer of `buffer_rows`, or as many as have `buffer_bytes` of text."""
    buffer: list[object] = []
    num_bytes = 0
    for row in rows:
        buffer.append(row)
        num_bytes += _text_bytes(row)
        while len(buffer) > 1 and (len(buffer) > buffer_rows or num_bytes > buffer_bytes):
            drawn = _take(buffer, int(rng.random() * (len(buffer) - 1)))
            num_bytes -= _text_bytes(drawn)
            yield drawn
    while buffer:
        yield _take(buffer, int(rng.random() * len(buffer)))


def _take(buffer: list[object], index: int) -> object:
    """Removes and returns a row; the last one moves to its place."""
    buffer[index], buffer[-1] = buffer[-1], buffer[index]
    return buffer.pop()


def _text_bytes(value: object) -> int:
    """Returns about the memory of a row in bytes: the number of characters of its texts."""
    if isinstance(value, Mapping):
        return sum(map(_text_bytes, value.values()))
    return sum(map(_text_bytes, value)) if isinstance(value, list) else len(value) if isinstance(value, str) else 0


def limited(rows: Iterator[object], doing: str) -> Iterator[object]:
    """Yields the rows, each within ROW_LIMIT_S. Raises HubUnreachable."""
    while True:
        row = within(ROW_LIMIT_S, doing, lambda: next(rows, _END))
        if row is _END:
            return
        yield row


def within(limit_s: float, doing: str, call: Callable[[], Result]) -> Result:
    """Returns the result of `call`, if it comes in `limit_s` seconds.

    Raises HubUnreachable if it raised anything, or took longer; then its thread is left behind to end with the process.
    """
    results: list[Result] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            results.append(call())
        except Exception as error:
            # Errors of httpx, fsspec, pyarrow, datasets and the hub client come through here; all mean "no rows".
            errors.append(error)

    # A thread, because no timeout ends the wait for a name server; a daemon, so that it cannot delay the exit.
    thread = threading.Thread(target=work, daemon=True, name="codezero-hub")
    thread.start()
    thread.join(limit_s)
    if results:
        return results[0]
    if errors:
        no_proxy = proxies.why_unusable() if isinstance(errors[0], ImportError) else ""
        why = no_proxy or f"{type(errors[0]).__name__}: {first_line(errors[0])}"
        raise HubUnreachable(f"{doing} failed ({why})") from errors[0]
    raise HubUnreachable(f"{doing} took longer than {limit_s:g} s")
