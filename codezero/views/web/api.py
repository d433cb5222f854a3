"""The dashboard's JSON for programs: read-only, with answers of bounded size. `/api/openapi.json` describes it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import msgspec
from fastapi import FastAPI, HTTPException, Path, Query

from codezero.identity.names import animal_name
from codezero.views.runs import Run
from codezero.views.web import page_data
from codezero.views.web.page_data import MOST, Board
from codezero.views.web.peers import peers_seen
from codezero.views.web.solutions import GROUPS_A_PAGE, shown
from codezero.views.web.source import WatchedFolders

Key = Annotated[str, Path(max_length=200)]
Limit = Annotated[int, Query(ge=1, le=MOST)]
Json = dict[str, Any]


def add_routes(app: FastAPI, source: WatchedFolders, board: Board | None) -> None:
    def found(key: str) -> Run:
        node = source.node(key)
        if node is None:
            raise HTTPException(404)
        return node

    @app.get("/api/nodes")
    def nodes() -> list[Json]:
        """Returns all nodes: their names, whether they run, and their status."""
        return [
            {
                "name": row["key"],
                "role": row["role"],
                "presence": asdict(row["presence"]),  # type: ignore[call-overload]
                "status": None if row["status"] is None else msgspec.to_builtins(row["status"]),
            }
            for row in page_data.node_rows(source)
        ]

    @app.get("/api/nodes/{key}/rounds")
    def rounds(key: Key, after: int = -1, limit: Limit = 100) -> list[Json]:
        """Returns a solver's finished rounds with numbers above `after`, ascending; the latest if `after` is -1."""
        reports = found(key).reports()
        chosen = [report for report in reports if report.round > after][:limit] if after >= 0 else reports[-limit:]
        return [msgspec.to_builtins(report) for report in chosen]

    @app.get("/api/nodes/{key}/learning")
    def learning(key: Key) -> Json | None:
        """Returns the record `Learning`, which says by a solver's probes whether it learns; null for a node without a
        solver."""
        told: Json | None = msgspec.to_builtins(found(key).learning())
        return told

    @app.get("/api/nodes/{key}/rounds/{number}/groups")
    def groups(key: Key, number: int, page: Annotated[int, Query(ge=1, le=100_000)] = 1) -> Json:
        """Returns tasks, solutions and verdicts of a round that is still kept; long texts are cut."""
        seen = found(key).groups_of(number)
        if seen is None:
            raise HTTPException(404)
        there = page_data.paged(seen.groups, page, GROUPS_A_PAGE)
        return {
            "round": number,
            "page": there.page,
            "pages": there.pages,
            "groups": [msgspec.to_builtins(one) for one in shown(seen.groups, there.page)],
        }

    @app.get("/api/nodes/{key}/batches")
    def batches(key: Key, limit: Limit = 100) -> list[Json]:
        """Returns a proposer's latest batches, ascending."""
        return [msgspec.to_builtins(batch) for batch in found(key).batches()[-limit:]]

    @app.get("/api/nodes/{key}/cases")
    def cases(key: Key, limit: Limit = 100) -> list[Json]:
        """Returns a test writer's latest batches, ascending."""
        return [msgspec.to_builtins(batch) for batch in found(key).cases()[-limit:]]

    @app.get("/api/nodes/{key}/peers")
    def peers(key: Key, limit: Limit = 100) -> list[Json]:
        """Returns the peers that a solver has learned from, those with most groups trained on first."""
        node = found(key)
        seen = peers_seen(node.reports(), node.rounds_with_groups())
        return [{"name": animal_name(peer.peer_id), **asdict(peer)} for peer in seen[:limit]]

    @app.get("/api/leaderboard")
    def standings(limit: Limit = 100) -> Json:
        """Returns rewards, rounds and votes by peer, the best first: the record `Leaderboard`, with names."""
        found = asdict(page_data.leaderboard(source, board))
        places = [{"name": animal_name(place["peer_id"]), **place} for place in found["places"][:limit]]
        return {**found, "places": places}
