"""A hub on loopback: just enough of its HTTP interface for huggingface_hub to list and download repositories."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator

from tests import local_http

COMMIT = "c" * 40


class FakeHub:
    """`repos[repo][name]` is what a download gives; `announced` replaces what the listing is made from."""

    def __init__(
        self, repos: dict[str, dict[str, bytes]], announced: dict[str, dict[str, bytes]] | None = None
    ) -> None:
        self.repos = repos
        self.announced = announced or repos
        self.requests: list[str] = []
        self.url = ""

    def listing(self, repo: str) -> dict[str, object]:
        files = self.announced[repo]
        siblings = [
            {
                "rfilename": name,
                "size": len(data),
                "blobId": hashlib.sha1(data, usedforsecurity=False).hexdigest(),
                **({"lfs": _lfs(data)} if name.endswith(".safetensors") else {}),
            }
            for name, data in files.items()
        ]
        return {"id": repo, "modelId": repo, "sha": COMMIT, "private": False, "tags": [], "siblings": siblings}

    def tree(self, repo: str) -> list[dict[str, object]]:
        return [
            {
                "type": "file",
                "path": name,
                "size": len(data),
                "oid": hashlib.sha1(data, usedforsecurity=False).hexdigest(),
                **({"lfs": {"oid": _lfs(data)["sha256"], "size": len(data), "pointerSize": 130}}
                   if name.endswith(".safetensors") else {}),
            }
            for name, data in self.announced[repo].items()
        ]  # fmt: skip


def _lfs(data: bytes) -> dict[str, object]:
    return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}


@contextlib.contextmanager
def serve(hub: FakeHub) -> Iterator[FakeHub]:
    class Handler(local_http.Handler):
        def do_HEAD(self) -> None:
            self._answer(send_body=False)

        def do_GET(self) -> None:
            self._answer(send_body=True)

        def _answer(self, send_body: bool) -> None:
            hub.requests.append(f"{self.command} {self.path}")
            parts = self.path.split("?")[0].strip("/").split("/")
            status, body, headers = 404, b"{}", {"X-Error-Code": "RepoNotFound"}
            if parts[:2] == ["api", "models"] and "/".join(parts[2:4]) in hub.announced:
                repo = "/".join(parts[2:4])
                content = hub.tree(repo) if "tree" in parts[4:5] else hub.listing(repo)
                status, body, headers = 200, json.dumps(content).encode(), {"Content-Type": "application/json"}
            elif parts[2:3] == ["resolve"]:
                data = hub.repos.get("/".join(parts[:2]), {}).get(parts[4])
                if data is not None:
                    etag = hashlib.sha256(data).hexdigest()
                    status, body, headers = 200, data, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT}
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if send_body:
                self.wfile.write(body)

    with local_http.serving(Handler) as hub.url:
        yield hub
