"""The content of each page as plain values, which the templates turn into HTML."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from markupsafe import Markup

from codezero.ledger.board import read_swarm_board
from codezero.ledger.leaderboard import Leaderboard
from codezero.observe.batches import writer_text
from codezero.observe.probes import Learning
from codezero.observe.roles import VERIFIER
from codezero.proposals import level_name
from codezero.views import words
from codezero.views.charts.figure import sparkline
from codezero.views.charts.runs import charts_of
from codezero.views.runs import Run
from codezero.views.web.peers import peers_seen
from codezero.views.web.solutions import GROUPS_A_PAGE, shown
from codezero.views.web.source import WatchedFolders

T = TypeVar("T")
Board = Callable[[], Leaderboard]
"""A function that returns the leaderboard of a ledger. It never raises."""
MOST = 1000
"""The most places of a leaderboard, and the most rows of an answer in JSON."""
ROWS_A_PAGE = 50
SPARK = 100
"""The most rounds in a small curve."""


@dataclass(frozen=True, slots=True)
class Paged:
    """One page of rows."""

    rows: Sequence[object]
    first: int
    """The place of the first row, from 1."""
    page: int
    pages: int
    total: int


def paged(rows: Sequence[T], page: int, size: int = ROWS_A_PAGE) -> Paged:
    """Returns the rows of a page, counted from 1; those of the last page if `page` is beyond it."""
    pages = max(1, -(-len(rows) // size))
    page = min(page, pages)
    before = (page - 1) * size
    return Paged(rows=rows[before : before + size], first=before + 1, page=page, pages=pages, total=len(rows))


def node_rows(source: WatchedFolders) -> list[dict[str, object]]:
    """Returns all nodes, for the list of nodes and the overview."""
    now_s = time.time()
    rows = []
    for key, node in source.nodes().items():
        status = node.status()
        there = words.presence(status, node.pid(), now_s)
        rows.append({"key": key, "role": node.role, "presence": there, "status": status})
    return rows


def overview(node: Run | None) -> dict[str, object]:
    if node is None:
        return {}
    status, pid, learning = node.status(), node.pid(), node.learning()
    current = status if status is not None and status.pid == pid else None  # not an earlier process's
    done, more = node.finished(), dict[str, object]()
    if node.solves:
        obstacles = words.obstacles(done, current)
        k = (status.group_size if status is not None else 0) or "k"
        sparks = [
            _spark("reward", [report.reward_mean for report in done]),
            _spark(f"pass@{k}", [report.pass_at_k for report in done]),
        ]
    elif node.role == VERIFIER:
        obstacles = words.verifier_obstacles(done)
        sparks = [
            _spark("reward", [batch.reward_mean for batch in done]),
            _spark("valid", [batch.valid for batch in done], "share valid"),
        ]
    else:
        obstacles = words.proposer_obstacles(done)
        sparks = [_spark("level", [float(batch.level) for batch in done])]
        more = {"level": level_name(done[-1].level) if done else "", "writer_text": writer_text}
    return {
        "status": status,
        "current": current,
        "presence": words.presence(status, pid, time.time()),
        "learning": learning,
        "last": done[-1] if done else None,
        "num_done": len(done),
        "obstacles": obstacles,
        "sparks": [*_probe_spark(learning), *sparks],
        **more,
    }


class Charts:
    """The charts of each node as they were drawn last, which are drawn again only where its numbers have changed."""

    def __init__(self) -> None:
        self._drawn: dict[str, tuple[object, list[Markup]]] = {}
        self._lock = threading.Lock()
        """Held while charts are drawn, so that of many requests one draws."""

    def page(self, node: Run | None) -> dict[str, object]:
        if node is None:
            return {}
        found, status = node.learning(), node.status()
        passes = found.passes if found is not None else ()
        size = status.group_size if status is not None else 0
        done = node.finished()
        version = node.folder, len(done), done[-1:], size, passes
        with self._lock:
            before, drawn = self._drawn.get(node.key, (None, []))
            if before != version:
                drawn = [Markup(one) for one in charts_of(node.role, done, passes, size)]
                self._drawn[node.key] = version, drawn
        return {"charts": drawn, "num_done": len(done)}


def rounds(node: Run | None, page: int) -> dict[str, object]:
    if node is None:
        return {}
    return {"done": paged(node.finished()[::-1], page), "readable": node.rounds_with_groups(), "level_name": level_name}


def one_round(node: Run | None, number: int, page: int) -> dict[str, object] | None:
    """Returns the content of a round's page; None if nothing is known of such a round."""
    if node is None:
        return None
    report = next((report for report in reversed(node.reports()) if report.round == number), None)
    seen = node.groups_of(number)
    if report is None and seen is None:
        return None
    groups = seen.groups if seen is not None else []
    there = paged(groups, page, GROUPS_A_PAGE)
    status = node.status()
    return {
        "number": number,
        "report": report,
        "kept": seen is not None,
        "paged": there,
        "groups": shown(groups, there.page),
        "own_id": status.peer_id if status is not None else "",
    }


def peers(node: Run | None, page: int) -> dict[str, object]:
    if node is None:
        return {}
    status = node.status()
    found = peers_seen(node.reports(), node.rounds_with_groups())
    return {"paged": paged(found, page), "own_id": status.peer_id if status is not None else ""}


def standings(source: WatchedFolders, board: Board | None, page: int) -> dict[str, object]:
    found = leaderboard(source, board)
    own = {status.peer_id for node in source.nodes().values() if (status := node.status()) is not None}
    return {"board": found, "paged": paged(found.places, page), "own_ids": own - {""}}


def leaderboard(source: WatchedFolders, board: Board | None) -> Leaderboard:
    """Returns the leaderboard of `board` if given, else of the nodes' own ledgers; of a chain, what was read before."""
    if board is not None:
        return board()
    return read_swarm_board([node.folder for node in source.nodes().values() if node.solves], limit_s=0, most=MOST)


def _spark(name: str, values: Sequence[float | None], label: str = "") -> tuple[str, float | None, Markup]:
    """Returns a name, the newest value and a small curve of the values, which `label` names in its description."""
    curve = sparkline(values[-SPARK:], f"{label or name} of the last {min(SPARK, len(values))}")
    return name, values[-1] if values else None, Markup(curve)


def _probe_spark(found: Learning | None) -> list[tuple[str, float | None, Markup]]:
    values = [100 * one.sampled for one in found.passes] if found is not None else []
    return [_spark("held-out problems solved, %", values, "share solved")] if values else []
