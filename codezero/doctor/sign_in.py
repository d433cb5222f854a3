"""Checks of the sign-in app and its session key, or of the wallet's passphrase."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from codezero.config import LedgerConfig, LedgerKind, checkout
from codezero.doctor import reach
from codezero.doctor.case import Case
from codezero.doctor.finding import Finding, error, info, ok, warning
from codezero.errors import ConfigError
from codezero.ledger.keystore import PASSPHRASE_ENV
from codezero.runtime.amounts import span

_MAX_FILE = 1 << 20
_SOON_S = 7 * 86400
_DEADLINE_AT = 2 + 2 * (1 + 32 + 4 + 21)
"""The index of the deadline in the sign-in app's digest (modal-login/lib/deferred.ts): 6 bytes in hex, 0 for none."""


class _Key(msgspec.Struct, rename="camel"):
    activated: bool = False
    deferred_action_digest: str = ""


def check(case: Case) -> Iterator[Finding]:
    config = case.config.ledger
    if config.kind is LedgerKind.wallet:
        yield from _passphrase(case)
    if config.kind is LedgerKind.modal:
        yield from _app(case, config.proxy_url)
        yield from _session(config)


def _passphrase(case: Case) -> Iterator[Finding]:
    file = case.config.ledger.passphrase_file
    if file is not None and not os.access(Path(file).expanduser(), os.R_OK):
        yield error("passphrase", f"{file} cannot be read", "no node can start", "correct ledger.passphrase_file")
    elif file is None and PASSPHRASE_ENV not in case.environment:
        yield info(
            "passphrase",
            f"neither {PASSPHRASE_ENV} nor ledger.passphrase_file is set",
            "a node asks for it on its terminal, and without one it does not start",
        )
    else:
        yield ok("passphrase", f"from {file or PASSPHRASE_ENV}; whether it opens the wallet shows at the start")


def _app(case: Case, url: str) -> Iterator[Finding]:
    from codezero.launch.app import AppPlace, SignInApp
    from codezero.runtime.console import Console

    parts = urlsplit(url)
    why = reach.look(case, "sign-in app", url.rstrip("/") + "/api/health")
    if why is not None:
        yield warning(
            "sign-in app",
            why,
            "rewards wait until it answers",
            f"{checkout.START} starts it with the node; if it is on another machine, see that one and ledger.proxy_url",
        )
        return
    if not reach.is_loopback(parts.hostname or ""):
        yield ok("sign-in app", f"{parts.hostname} answers")
        return
    place = AppPlace(folder=Path("modal-login"), port=parts.port or 80, log=Path(os.devnull))
    try:
        alchemy = SignInApp(place, case.environment, Console()).health()
    except ConfigError as fault:
        what, _, do = str(fault).partition(": ")
        yield error("sign-in app", what, "the app cannot start, so nobody can sign in", do)
        return
    if alchemy == "reachable":
        yield ok("sign-in app", f"it answers on port {place.port}, and reaches Alchemy")
    else:
        yield warning(
            "sign-in app",
            f"it answers on port {place.port}: Alchemy is {alchemy or 'not known'}",
            "nobody can sign in, and nothing is sent; who has signed in stays so",
            "see to the connection and to ALCHEMY_API_KEY; a local wallet needs neither (--sign-in wallet)",
        )


def _session(config: LedgerConfig) -> Iterator[Finding]:
    """Reports when the session key that the app signs with expires, by the app's file; the private key is not read."""
    path = Path(config.login_dir).expanduser() / "userApiKey.json"
    try:
        with path.open("rb") as file:
            found = msgspec.json.decode(file.read(_MAX_FILE), type=dict[str, list[_Key]])
    except FileNotFoundError:
        return  # nobody has signed in here, which the finding `account` reports
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        yield error("session key", f"{path} is damaged or cannot be read", "the app signs nothing", "sign in again")
        return
    for org_id, keys in found.items():
        if config.org_id and org_id != config.org_id:
            continue
        left_s = min((deadline_s(key.deferred_action_digest) for key in keys[-1:] if key.activated), default=0.0)
        left_s -= time.time() if left_s else 0.0
        if left_s < 0:
            yield warning(
                "session key",
                f"it expired {span(-left_s)} ago",
                "the app refuses to send anything; rewards wait",
                "sign in again at the app, with the same email or passkey",
            )
        elif 0 < left_s < _SOON_S:
            do = "sign in again at the app before then"
            yield warning("session key", f"it expires in {span(left_s)}", "after that rewards wait", do)
        elif left_s:
            yield ok("session key", f"it holds for another {span(left_s)}")


def deadline_s(digest: str) -> float:
    """Returns the Unix time at which a session key expires; 0 for one without a deadline, and for an invalid digest."""
    found = digest[_DEADLINE_AT : _DEADLINE_AT + 12]
    return float(int(found, 16)) if re.fullmatch("[0-9a-fA-F]{12}", found) else 0.0
