"""A dataset hub on this machine: as much of the Hugging Face HTTP API as streaming two small datasets takes."""

from __future__ import annotations

import hashlib
import json
from contextlib import AbstractContextManager
from urllib.parse import unquote, urlparse

from tests import local_http

REVISION = "a" * 40

Repos = dict[str, dict[str, bytes]]
"""Dataset id to file name to content."""


def fake_hub(repos: Repos) -> AbstractContextManager[str]:
    """Serves `repos` and gives the value for HF_ENDPOINT."""
    return local_http.serving(type("Handler", (_Handler,), {"repos": repos}))


class _Handler(local_http.Handler):
    protocol_version = "HTTP/1.1"
    repos: Repos

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = unquote(urlparse(self.path).path)
        for repo, files in self.repos.items():
            if path.startswith(f"/datasets/{repo}/resolve/"):
                name = path.removeprefix(f"/datasets/{repo}/resolve/").split("/", 1)[1]
                return self.send_file(files.get(name))
            if path.startswith(f"/api/datasets/{repo}/tree/"):
                folder = [*path.removeprefix(f"/api/datasets/{repo}/tree/").split("/", 1), ""][1]
                return self.send_json(children(files, folder))
            if path.startswith(f"/api/datasets/{repo}"):
                siblings = [{"rfilename": name} for name in files]
                return self.send_json({"id": repo, "_id": "1", "sha": REVISION, "siblings": siblings})
        return self.reply(200 if path == "/" else 404, b"", {"X-Error-Code": "RepoNotFound"})

    def send_json(self, value):
        self.reply(200, json.dumps(value).encode(), {})

    def send_file(self, content):
        if content is None:
            return self.reply(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": REVISION})
        headers = {
            "ETag": f'"{hashlib.sha1(content).hexdigest()}"',
            "X-Repo-Commit": REVISION,
            "Accept-Ranges": "bytes",
        }
        if "Range" not in self.headers:
            return self.reply(200, content, headers)
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        part = content[int(first) : int(last) + 1]
        headers["Content-Range"] = f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}"
        return self.reply(206, part, headers)

    def reply(self, status, body, headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def children(files, folder):
    """What lies directly in a folder."""
    inside = [name for name in sorted(files) if name.startswith(folder)]
    names = {name: name.removeprefix(folder).lstrip("/").partition("/") for name in inside}
    folders = {name.removesuffix(rest) for name, (_, slash, rest) in names.items() if slash}
    return [{"type": "directory", "path": name.rstrip("/"), "size": 0, "oid": "0"} for name in sorted(folders)] + [
        {"type": "file", "path": name, "size": len(files[name]), "oid": hashlib.sha1(files[name]).hexdigest()}
        for name, (_, slash, _) in names.items()
        if not slash
    ]
