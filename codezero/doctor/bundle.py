"""The support archive: listed files, with listed fields, for somebody who helps with a problem.

Every text is then searched for secrets, which are removed: the known values of this machine (`secrets`), and whatever
looks like a secret (`redact`).
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import platform
import re
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from codezero.config import checkout
from codezero.config.load import explain
from codezero.doctor import allowed, secrets
from codezero.doctor.case import ExaminedNode
from codezero.doctor.files import Absent, Unusable, text_of
from codezero.doctor.finding import Finding, as_json
from codezero.doctor.redact import Redactor
from codezero.errors import CodezeroError, IdentityError, StateError
from codezero.identity.key import write_new
from codezero.launch import launcher_log
from codezero.observe.probes import NODE, PAIR, ProbeReport
from codezero.observe.roles import ROLES, log_name
from codezero.observe.status import Status
from codezero.runtime.amounts import utc
from codezero.views.runs import RECORDS, REPORTS

if TYPE_CHECKING:
    from codezero.ledger.reading import Pending

LOG_BYTES = 1_000_000
"""Bytes taken from the end of each log."""
REPORT_BYTES = 300_000
"""Bytes taken from the end of each file of reports."""
SMALL_BYTES = 100_000
"""The size in bytes above which a settings or status file is left out, since a genuine one is never that large."""
_LOGS = (*(f"{log_name(role)}{end}" for role in ROLES for end in ("", ".1", ".2", ".3")), "yarn.log", launcher_log.NAME)
"""The logs of each role, of which `runtime.logs` keeps three earlier files, and those of the sign-in app and of what
started the node."""
_RECORDS = {REPORTS[role]: RECORDS[role] for role in ROLES} | {NODE.file: ProbeReport, PAIR.file: ProbeReport}
"""The files of reports, with the record of a line of each."""
_PARTS = ("", "proposer/", "verifier/")
"""The places in a state folder with settings and a status: those of each role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The contents of a support archive."""

    files: dict[str, bytes]
    """The content of each file, by its name in the archive."""
    left_out: dict[str, str]
    """The reason why a file was left out, by its name."""


def write(path: Path, case: ExaminedNode, findings: Sequence[Finding]) -> list[str]:
    """Writes the archive, readable by its owner alone, and returns lines that tell the user what is in it.

    Raises StateError: the path exists already, does not end as an archive's name does, or cannot be written.
    """
    if not path.name.endswith((".tar.gz", ".tgz")):
        raise StateError(f"{path} is not the name of an archive: end it in .tar.gz")
    contents = collect(case, findings)
    try:
        write_new(path, _tar(contents.files))
    except FileExistsError as fault:
        raise StateError(f"{path} already exists: give another name for the archive") from fault
    except IdentityError as fault:
        raise StateError(str(fault)) from fault
    return [
        f"{path} ({path.stat().st_size / 1000:.0f} kB), readable by you alone, has:",
        *(f"  {name} ({len(content) / 1000:.1f} kB)" for name, content in contents.files.items()),
        *(f"  not {name}: {why}" for name, why in contents.left_out.items()),
        "secrets are removed as far as they were recognised; it names peers, their addresses and your tasks:",
        "read it before you give it to anybody",
    ]


def without_secrets(case: ExaminedNode, findings: Sequence[Finding]) -> list[Finding]:
    """Returns the findings with secrets removed, to show to the user: names of users and folders stay in them."""
    return _redacted(Redactor(secrets.values(case), public=_hashes(case.state_dir / "outbox.sqlite")), findings)


def _redacted(redact: Redactor, findings: Sequence[Finding]) -> list[Finding]:
    return [
        replace(finding, found=redact(finding.found), means=redact(finding.means), do=redact(finding.do))
        for finding in findings
    ]


def collect(case: ExaminedNode, findings: Sequence[Finding]) -> Contents:
    redact = Redactor(secrets.values(case), secrets.private_names(case), _hashes(case.state_dir / "outbox.sqlite"))
    files: dict[str, bytes] = {}
    left_out: dict[str, str] = {}
    for name, make in _parts(case, _redacted(redact, findings)):
        try:
            text = redact(make())
        except Absent:
            continue
        except (Unusable, CodezeroError, OSError, ValueError) as fault:
            left_out[name] = redact(str(fault))
            continue
        if redact.finds(text):  # a removal can join two parts of a secret
            left_out[name] = "a secret could not be removed from it"
        else:
            files[name] = text.encode("utf-8", "replace")
    return Contents(files=files, left_out=left_out)


def _parts(case: ExaminedNode, findings: Sequence[Finding]) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yields, for each file that may come into an archive, its name in the archive and a function that reads it."""
    yield "doctor.json", lambda: as_json(findings)
    yield "versions.json", _versions
    yield "config.yaml", lambda: explain(case.config, allowed.value)
    yield "outbox.json", lambda: _outbox(case.state_dir / "outbox.sqlite")
    for part in _PARTS:
        settings, status = case.state_dir / part / "settings.json", case.state_dir / part / "status.json"
        yield f"state/{part}settings.json", lambda path=settings: allowed.settings(_small(path), case.config)  # type: ignore[misc]
        yield f"state/{part}status.json", lambda path=status: allowed.record(_small(path), Status)  # type: ignore[misc]
    for name, kind in _RECORDS.items():
        path = case.log_dir / name
        yield f"logs/{name}", lambda path=path, kind=kind: allowed.records(_end(path, REPORT_BYTES), kind)  # type: ignore[misc]
    yield "logs/prg_record.txt", lambda: _end(case.log_dir / "prg_record.txt", REPORT_BYTES)
    for name in _LOGS:
        yield f"logs/{name}", lambda name=name: _end(case.log_dir / name, LOG_BYTES)  # type: ignore[misc]
    # `swarm up` keeps here all that a node printed, also before it had a log, and above it what it printed itself
    node = case.state_dir.parent
    yield "output.log", lambda: _end(node / "output.log", LOG_BYTES)
    yield launcher_log.NAME, lambda: _end(node.parent / launcher_log.NAME, LOG_BYTES)


def _end(path: Path, most: int) -> str:
    text = text_of(path, most)
    if not text and path.stat().st_size:
        raise Unusable("its end has zeros only, or no beginning of a line")
    return text


def _small(path: Path) -> str:
    if path.is_file() and path.stat().st_size > SMALL_BYTES:
        raise Unusable(f"it has {path.stat().st_size} bytes, more than such a file ever has")
    return _end(path, SMALL_BYTES)


def _versions() -> str:
    packages = {found.metadata["Name"]: found.version for found in metadata.distributions() if found.metadata["Name"]}
    system = {"codezero": checkout.version(), "python": platform.python_version(), "system": platform.platform()}
    return json.dumps({**system, "made_at": utc(time.time()), "packages": dict(sorted(packages.items()))}, indent=1)


def _outbox(path: Path) -> str:
    """Returns the outbox as JSON: its last 200 entries with their states, without the signed transactions."""
    pending = _pending(path)
    items = [asdict(item) for item in pending.items[-200:]]
    owed = [{**asdict(scope), "points": points} for scope, points in pending.owed]
    return json.dumps({"trouble": pending.trouble, "owed": owed, "items": items}, indent=1, ensure_ascii=False)


def _hashes(path: Path) -> list[str]:
    """Returns the hashes of the node's transactions: they are public on the chain, and help to find them there."""
    try:
        references = [item.reference for item in _pending(path).items]
    except (Unusable, CodezeroError, OSError):
        return []
    return [reference for reference in references if re.fullmatch("0x[0-9a-fA-F]{64}", reference)]


def _pending(path: Path) -> Pending:
    if not path.exists():
        raise Absent("it is not there")
    from codezero.ledger.reading import read_pending

    return read_pending(path)


def _tar(files: dict[str, bytes]) -> bytes:
    """Packs the files as .tar.gz, without the user's name and the archive's own, which tar and gzip would record."""
    out = io.BytesIO()
    with (
        contextlib.closing(gzip.GzipFile(filename="", fileobj=out, mode="wb")) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name, content in files.items():
            entry = tarfile.TarInfo(f"codezero-support/{name}")
            entry.size, entry.mtime, entry.mode = len(content), int(time.time()), 0o600
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()
