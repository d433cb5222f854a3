"""A hub on this machine that takes models: as much of the Hugging Face HTTP API as a push needs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from urllib.parse import unquote, urlparse

from tests import local_http

TOKEN = "hf_PlantedSecretToken"


class PushHub:
    """What it holds, what it was asked, and how it is to misbehave."""

    def __init__(self):
        self.url = ""
        self.repos: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.commits: list[str] = []
        self.blobs: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []
        self.tokens: set[str | None] = set()
        self.faults: dict[str, list[tuple[int, dict[str, str]]]] = {}
        """By a part of the path: what the next requests there get instead."""
        self.hangs: set[str] = set()
        """Parts of paths where no answer ever comes."""
        self.released = threading.Event()

    def asked(self, part):
        return sum(part in path for _, path in self.requests)


@contextmanager
def push_hub():
    hub = PushHub()
    with local_http.serving(type("Handler", (_Handler,), {"hub": hub})) as hub.url:
        try:
            yield hub
        finally:
            hub.released.set()


class _Handler(local_http.Handler):
    protocol_version = "HTTP/1.1"
    hub: PushHub

    def do_GET(self):
        self.serve(b"")

    def do_POST(self):
        self.serve(self.body())

    do_PUT = do_POST

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def serve(self, body):
        hub, path = self.hub, unquote(urlparse(self.path).path)
        hub.requests.append((self.command, path))
        if any(part in path for part in hub.hangs):
            hub.released.wait(60)
            return self.reply(500, {})
        for part, faults in hub.faults.items():
            if part in path and faults:
                status, headers = faults.pop(0)
                return self.reply(status, {"error": "planted fault"}, headers)
        if path.startswith("/lfs/"):
            hub.blobs[path.removeprefix("/lfs/")] = body
            assert hashlib.sha256(body).hexdigest() == path.removeprefix("/lfs/")
            return self.reply(200, {})
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        hub.tokens.add(given)
        if given != TOKEN:
            return self.reply(401, {"error": "Invalid credentials in Authorization header"})
        return self.route(path, body)

    def route(self, path, body):
        hub = self.hub
        if path == "/api/whoami-v2":
            return self.reply(200, {"type": "user", "name": "alice"})
        if path == "/api/validate-yaml":
            return self.reply(200, {"errors": [], "warnings": []})
        if path == "/api/repos/create":
            return self.create(json.loads(body))
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/(tree|preupload|commit)/main", path):
            repo, what = found.groups()
            if repo not in hub.repos:
                return self.reply(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
            return getattr(self, what)(repo, body)
        if found := re.fullmatch(r"/([^/]+/[^/]+)\.git/info/lfs/objects/batch", path):
            return self.batch(json.loads(body))
        return self.reply(404, {"error": f"no such path {path}"})

    def create(self, wanted):
        repo = f"{wanted.get('organization') or 'alice'}/{wanted['name']}"
        if repo in self.hub.repos:
            return self.reply(409, {"error": "You already created this model repo", "url": f"{self.hub.url}/{repo}"})
        self.hub.repos[repo] = {".gitattributes": b"*.safetensors filter=lfs\n"}
        self.hub.private[repo] = wanted.get("visibility") == "private" or bool(wanted.get("private"))
        return self.reply(200, {"url": f"{self.hub.url}/{repo}", "name": repo})

    def tree(self, repo, body):
        files = self.hub.repos[repo].items()
        return self.reply(200, [{"type": "file", "path": name, "size": len(data), "oid": "0"} for name, data in files])

    def preupload(self, repo, body):
        files = json.loads(body)["files"]
        mode = {True: "lfs", False: "regular"}
        found = [
            {"path": f["path"], "uploadMode": mode[f["path"].endswith(".safetensors")], "shouldIgnore": False}
            for f in files
        ]
        return self.reply(200, {"files": found})

    def batch(self, wanted):
        assert "xet" not in wanted["transfers"]
        objects = []
        for item in wanted["objects"]:
            known = item["oid"] in self.hub.blobs
            upload = {"upload": {"href": f"{self.hub.url}/lfs/{item['oid']}", "header": {}}}
            objects.append({**item} if known else {**item, "actions": upload})
        return self.reply(200, {"transfer": "basic", "objects": objects})

    def commit(self, repo, body):
        files = dict(self.hub.repos[repo])
        for line in body.splitlines():
            item = json.loads(line)
            value = item["value"]
            if item["key"] == "header":
                summary = value["summary"]
            elif item["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif item["key"] == "lfsFile":
                files[value["path"]] = self.hub.blobs[value["oid"]]
            elif item["key"] == "deletedFile":
                del files[value["path"]]
        self.hub.repos[repo] = files
        self.hub.commits.append(summary)
        oid = f"{len(self.hub.commits):040d}"
        return self.reply(200, {"commitUrl": f"{self.hub.url}/{repo}/commit/{oid}", "commitOid": oid})

    def reply(self, status, value, headers=None):
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {**(headers or {}), "Content-Length": str(len(data))}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)
