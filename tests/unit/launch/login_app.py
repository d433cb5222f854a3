"""The sign-in app's folder with a stand-in for npm: it notes what it is asked, and serves what the real app would."""

import json
import shutil
import sys

from tests.commands import executable
from tests.ports import free_port

ORG_ID = "7f1d2c9a-0000-4000-8000-000000000001"
OTHER = "7f1d2c9a-0000-4000-8000-000000000002"
NPM = """\
#!{python}
import base64, hmac, json, os, pathlib, signal, sys, time, urllib.parse
from http.server import BaseHTTPRequestHandler, HTTPServer
here = pathlib.Path.cwd()
with open(here.parent / "npm.log", "a") as log:
    print(*sys.argv[1:], file=log)
if (here.parent / "fails").exists():
    sys.exit("npm error: no space left")
if sys.argv[1] == "ci":
    (here / "node_modules").mkdir(exist_ok=True)
    (here / "node_modules" / ".package-lock.json").write_text("")
    sys.exit()
if sys.argv[1] == "run":
    (here / ".next").mkdir(exist_ok=True)
    (here / ".next" / "BUILD_ID").write_text("")
    sys.exit()
TOKEN = "t" * 43
(here / "temp-data").mkdir(exist_ok=True)
(here / "temp-data" / "token").write_text(TOKEN)
class App(BaseHTTPRequestHandler):
    def do_POST(self):
        assert (self.path, self.headers["authorization"]) == ("/api/ticket", "Bearer " + TOKEN)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({{"ticket": "k" * 43}}).encode())
    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        given = self.headers["authorization"]
        assert url.path != "/api/health" or given is None
        if url.path != "/api/health" and given != "Bearer " + TOKEN:
            self.send_error(403)
            return
        if url.path == "/api/health":
            health = here.parent / "health"
            nonce = urllib.parse.parse_qs(url.query)["nonce"][0]
            asked = " ".join(["health", os.environ["PORT"], nonce])
            proof = base64.urlsafe_b64encode(hmac.digest(TOKEN.encode(), asked.encode(), "sha256")).decode().rstrip("=")
            body = json.dumps({{"alchemy": health.read_text() if health.exists() else "reachable", "proof": proof}})
        else:
            keys = json.loads((here / "temp-data" / "userApiKey.json").read_text())
            mine = keys.get(urllib.parse.parse_qs(url.query)["orgId"][0], [])
            body = "activated" if any(key["activated"] for key in mine) else "not activated"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body.encode())
    def log_message(self, *_):
        pass
(here.parent / "environment.json").write_text(json.dumps(dict(os.environ)))
if (here.parent / "slow").exists():
    signal.signal(signal.SIGTERM, lambda *_: (time.sleep(3), os._exit(0)))
(here.parent / "pid").write_text(str(os.getpid()))
HTTPServer(("127.0.0.1", int(os.environ["PORT"])), App).serve_forever()
"""


class LoginApp:
    def __init__(self, folder):
        self.folder = folder / "modal-login"
        self.folder.mkdir()
        for name in ("package.json", "package-lock.json"):
            (self.folder / name).write_text("{}")
        (self.folder / "app").mkdir()
        (self.folder / "app" / "page.tsx").write_text("")
        self.tools = folder / "tools"
        executable(self.tools / "npm", NPM.format(python=sys.executable))
        executable(self.tools / "node", "#!/bin/sh\necho v22.1.0\n")
        self.port = free_port()

    def asked(self):
        """What npm was asked for, one line each."""
        path = self.folder.parent / "npm.log"
        return path.read_text().splitlines() if path.exists() else []

    def sign_in(self, *org_ids, activated=True):
        data = self.folder / "temp-data"
        data.mkdir(exist_ok=True)
        key = {"publicKey": "0x04", "privateKey": "0xsecret", "activated": activated}
        (data / "userApiKey.json").write_text(json.dumps({org_id: [key] for org_id in org_ids}))
        (data / "userData.json").write_text(
            json.dumps({org_id: {"orgId": org_id, "address": "0x1"} for org_id in org_ids})
        )

    def pid(self):
        return int((self.folder.parent / "pid").read_text())

    def environment(self):
        """Of the app when it was started last."""
        return json.loads((self.folder.parent / "environment.json").read_text())

    def remove(self):
        shutil.rmtree(self.folder)
