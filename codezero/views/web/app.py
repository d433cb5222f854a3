"""The pages and the JSON of the dashboard. Every page is complete without the script, which only fetches it again and
replaces what has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException as StarletteHTTPException

from codezero import __version__
from codezero.runtime.console import json_line
from codezero.views.runs import Run
from codezero.views.web import api, page_data
from codezero.views.web.guard import FAILED, Guard
from codezero.views.web.page_data import Board
from codezero.views.web.pages import render, static_files
from codezero.views.web.source import WatchedFolders

NodeName = Annotated[str | None, Query(alias="node", max_length=200)]
Page = Annotated[int, Query(ge=1, le=1_000_000)]


class AsciiJson(JSONResponse):
    """JSON in which text of peers cannot control the terminal that `curl` prints it on."""

    def render(self, content: Any) -> bytes:
        return json_line(content).encode()


def make_app(source: WatchedFolders, board: Board | None = None, hosts: Sequence[str] = ()) -> Guard:
    """Returns the dashboard of the nodes of `source`, as an ASGI app.

    `board` returns the leaderboard, if it is not that of the nodes' own ledgers; `hosts` are further names, or
    addresses, under which the dashboard is reached.
    """
    app = FastAPI(
        title="codezero dashboard",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        default_response_class=AsciiJson,
    )
    app.router.redirect_slashes = False
    _answer_errors(app)
    _serve_files(app)
    _serve_pages(app, source, board)
    api.add_routes(app, source, board)
    return Guard(app, hosts)


def _serve_pages(app: FastAPI, source: WatchedFolders, board: Board | None) -> None:
    def serve(path: str, name: str, content: Callable[[Run | None, int, int], dict[str, object] | None]) -> None:
        @app.get(path, include_in_schema=False, name=name)
        def answer(request: Request, number: int = 0, node: NodeName = None, page: Page = 1) -> Response:
            found = source.node(node)
            values = content(found, page, number)
            if values is None or (found is None and node is not None):
                raise HTTPException(404)
            frame = {
                "nodes": page_data.node_rows(source),
                "node": found,
                "page_name": name,
                "folders": source.folders,
                "has_ledger": board is not None,
            }
            return _page(request, render(f"{name}.html", {**frame, **values}))

    charts = page_data.Charts()
    serve("/", "overview", lambda node, page, number: page_data.overview(node))
    serve("/charts", "charts", lambda node, page, number: charts.page(node))
    serve("/rounds", "rounds", lambda node, page, number: page_data.rounds(node, page))
    serve("/rounds/{number}", "round", lambda node, page, number: page_data.one_round(node, number, page))
    serve("/peers", "peers", lambda node, page, number: page_data.peers(node, page))
    serve("/leaderboard", "leaderboard", lambda node, page, number: page_data.standings(source, board, page))


def _page(request: Request, html: str) -> Response:
    body = html.encode(errors="replace")
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"etag": tag, "cache-control": "no-store"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="text/html; charset=utf-8", headers=headers)


def _serve_files(app: FastAPI) -> None:
    files = static_files()

    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str) -> Response:
        if name not in files:
            raise HTTPException(404)
        body, kind = files[name]
        return Response(body, media_type=kind, headers={"cache-control": "max-age=86400"})


def _answer_errors(app: FastAPI) -> None:
    """Adds answers to errors in plain words, without the request's text and without internal details."""

    @app.exception_handler(StarletteHTTPException)
    def refused(request: Request, error: StarletteHTTPException) -> Response:
        text = "There is no such page, node or round here; old rounds go. The start page is /"
        return PlainTextResponse(f"{text}\n" if error.status_code == 404 else "Refused.\n", error.status_code)

    @app.exception_handler(Exception)
    def failed(request: Request, error: Exception) -> Response:  # and the guard logs it
        return PlainTextResponse(FAILED, 500)

    @app.exception_handler(RequestValidationError)
    def unreadable(request: Request, error: RequestValidationError) -> Response:
        return PlainTextResponse("The address has a number or name that is not one. The start page is /\n", 400)
