"""Signs the user in: resumes an existing session, or waits for a new one in the browser and prints why it waits.

The app's files (temp-data) are only read here, so that they outlive stops, crashes and time limits.
"""

from __future__ import annotations

import html
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Mapping
from pathlib import Path

import msgspec

from codezero.errors import LedgerError
from codezero.launch.app import SignInApp
from codezero.runtime.console import Console

LIMIT_S = 900.0
"""Seconds that a person has to sign in."""
_POLL_S = 0.5
_LOOK_S = 5.0
"""Seconds between two requests for the app's health, each of which makes it ask Alchemy."""
_REMIND_S = 60.0
_STARTS_S = 5.0
_MAX_FILE = 1 << 20
_REDIRECT = "open.html"
_ORG_ID = re.compile(r"[\x21-\x7e]{1,200}")
"""The form of user ids by the app's own rule."""


def users(login_dir: Path) -> list[str]:
    """Returns the ids of users who have signed in on this machine; none while the file is missing or being written."""
    try:
        with (login_dir / "userData.json").open("rb") as file:
            found = msgspec.json.decode(file.read(_MAX_FILE), type=dict[str, msgspec.Raw])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []
    return [org_id for org_id in found if _ORG_ID.fullmatch(org_id)]


def signed_in(
    app: SignInApp, environment: Mapping[str, str], console: Console, org_id: str = "", limit_s: float = LIMIT_S
) -> str:
    """Returns the id of the user whose session key the app holds; where there is none, waits for one to sign in.
    `org_id` is that of one of several users; empty takes the only one.

    Raises LedgerError: several users have signed in, or nobody did in time.
    """
    active = _active(app, org_id)
    if active is not None:
        console.line(f"sign-in: user {active} is already signed in")
        return active
    try:
        _tell_where(app, environment, console)
        active = _awaited(app, org_id, limit_s, console)
    finally:
        (app.place.login_dir / _REDIRECT).unlink(missing_ok=True)
    console.line(f"sign-in: done, user {active}")
    return active


def _awaited(app: SignInApp, org_id: str, limit_s: float, console: Console) -> str:
    deadline, said, said_at_s, looked_at_s = time.monotonic() + limit_s, "", 0.0, 0.0
    why = ""
    while (active := _active(app, org_id)) is None:
        now = time.monotonic()
        if now - looked_at_s > _LOOK_S:
            why, looked_at_s = _waiting_for(app), now
        if now > deadline:
            raise LedgerError(
                f"nobody signed in within {limit_s / 60:.0f} minutes (last: {why}): start again, or take a "
                "local wallet with --sign-in wallet; earlier sign-ins are kept"
            )
        if why != said or now - said_at_s > _REMIND_S:
            console.line(f"sign-in: {why}; {max(1, round((deadline - now) / 60))} minutes left (Ctrl-C to leave)")
            said, said_at_s = why, now
        time.sleep(_POLL_S)
    return active


def _active(app: SignInApp, org_id: str) -> str | None:
    known = [one for one in users(app.place.login_dir) if org_id in ("", one)]
    found = [one for one in known if app.is_activated(one)]
    if len(found) > 1:
        raise LedgerError(
            f"{len(found)} users have signed in ({', '.join(found[:5])}): choose one with --org-id or ORG_ID"
        )
    return found[0] if found else None


def _waiting_for(app: SignInApp) -> str:
    alchemy = app.health()
    if alchemy is None:
        return "the app does not answer now"
    if alchemy != "reachable":
        why = ascii(alchemy.removeprefix("unreachable: ")[:200])[1:-1]
        return f"Alchemy, which signs you in, is not reached from here ({why}); a local wallet does not need it"
    if users(app.place.login_dir):
        return "a user is known, and the key for this machine is not activated yet: continue in the browser"
    return "waiting for you to sign in in the browser"


def _tell_where(app: SignInApp, environment: Mapping[str, str], console: Console) -> None:
    address = app.address() or app.place.url
    console.show(f"sign-in: open {address} in a browser on this machine")  # not logged: it admits whoever opens it
    if not _open_browser(address, app.place.login_dir / _REDIRECT, environment):
        port = app.place.port
        console.line(
            f"sign-in: from elsewhere, first: ssh -L {port}:localhost:{port} THIS_MACHINE; then the same address"
        )


def _open_browser(address: str, redirect: Path, environment: Mapping[str, str]) -> bool:
    """Opens the address in a browser and returns whether one was started. The address goes through a file, since other
    users of the machine can read programs' arguments. Without a screen none is started: a text browser would take the
    terminal."""
    on_windows = "microsoft" in platform.release().lower() and shutil.which("explorer.exe")  # WSL
    has_screen = sys.platform == "darwin" or any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if not (on_windows or has_screen or os.environ.get("BROWSER")):
        return False
    try:
        redirect.unlink(missing_ok=True)
        with open(os.open(redirect, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(address)}">')
        if on_windows:
            path = subprocess.check_output(["wslpath", "-w", redirect], text=True).strip()
            return subprocess.run(["explorer.exe", path], capture_output=True, check=False).returncode in (0, 1)
        return _shows(redirect.absolute().as_uri())
    except (OSError, subprocess.SubprocessError):
        return False


def _shows(url: str) -> bool:
    """Returns whether a browser shows the URL. One that Python does not know is left running in a thread, since it
    returns only when it is closed."""
    opened: list[bool] = []

    def open_it() -> None:
        try:
            opened.append(webbrowser.open(url))
        except (OSError, webbrowser.Error):
            opened.append(False)

    opener = threading.Thread(target=open_it, name="browser", daemon=True)
    opener.start()
    opener.join(_STARTS_S)
    return not opened or opened[0]
