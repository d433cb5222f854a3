"""The top of a node's page: its name, whether it runs, its round or batch, the stage and the time left."""

from __future__ import annotations

from rich.text import Text

from codezero.observe.roles import SOLVER
from codezero.observe.status import Status
from codezero.runtime.amounts import brief
from codezero.types import SOLO_PEER_ID
from codezero.views import words
from codezero.views.terminal.snapshot import Snapshot
from codezero.views.terminal.text import BAD, BOLD, DIM, bar, fit, row, safe, sides


def top(snapshot: Snapshot, width: int) -> list[Text]:
    """Returns the lines of identity and progress, each part with a blank line behind it."""
    return [*_identity(snapshot, width), Text(""), *_progress(snapshot, width), Text("")]


def _identity(snapshot: Snapshot, width: int) -> list[Text]:
    """Returns two lines: name and version; peer, model and uptime."""
    status = snapshot.status
    if status is None:
        return [Text(safe(snapshot.name or snapshot.role), BOLD), row(" ", "it has written no status yet")]
    name = status.animal or f"a {safe(status.role)} without a key"
    prefix = f"{safe(snapshot.name)}: " if snapshot.name else ""
    version = Text(f"codezero {safe(status.version)} {safe(status.role)}", DIM)
    made = ", ".join(filter(None, (model_name(status), safe(status.method))))
    first = sides(Text(f"{prefix}{name}", BOLD), version, width)
    peer = safe(status.peer_id) if status.peer_id != SOLO_PEER_ID else "alone"
    peer = peer if len(peer) < 20 or width > 110 else f"{peer[:6]}…{peer[-6:]}"
    return [first, sides(Text("  ".join(filter(None, (peer, made))), DIM), _up(snapshot, status), width)]


def model_name(status: Status) -> str:
    """Returns the model's name without the folders of a path."""
    return safe(status.model.rstrip("/").rsplit("/", 1)[-1])


def _up(snapshot: Snapshot, status: Status) -> Text:
    there = snapshot.presence()
    if there.state == "running":
        up = f", up {brief(snapshot.now_s - status.started_at_s)}" if snapshot.is_current else ""
        return Text(f"process {snapshot.pid}{up}", DIM)
    return Text(f"! {there.state}", BAD)


def _progress(snapshot: Snapshot, width: int) -> list[Text]:
    """Returns lines with round or batch, a bar for the running stage, time left, and usual seconds of all stages."""
    status = snapshot.status
    if status is None:
        return []
    label = "Round" if snapshot.role == SOLVER else "Batch"
    number = "-" if status.round is None else str(status.round)
    there = snapshot.presence()
    if snapshot.pid is not None and not snapshot.is_current:
        return [row("", there.text)]
    told = () if there.state == "running" else (there.text, there.meaning, there.do)
    more = [row("", (safe(text), BAD)) for text in told if text]
    if snapshot.pid is None:
        return [row(label, (number, BOLD), f"  was {safe(words.doing(status))}" if not status.ended else ""), *more]
    line = row(label, (number, BOLD), f"  {safe(words.doing(status))}")
    share, note = _share(status, snapshot.now_s)
    if share is not None:
        left_s = status.left_s(snapshot.now_s) if not more else None
        left = "" if left_s is None else f"  about {brief(left_s)} left"
        room = width - line.cell_len - len(note) - len(left) - 3
        line.append(f"  {bar(share, min(room, 40))} " if room > 5 else "  ")
        line.append(note)
        line.append(left, BOLD)
    return [fit(line, width), fit(_stages(status), width), *more]


def _share(status: Status, now_s: float) -> tuple[float | None, str]:
    """Returns the share of the stage that is done, in 0..1, by its own count or else by the clock, and the count as
    text. The share is None if it is not known, the text empty without a count."""
    if status.total > 0:
        return status.done / status.total, f"{status.done}/{status.total}"
    usual_s = status.usual_s.get(status.stage, 0.0)
    if usual_s <= 0:
        return None, ""
    return min((now_s - status.stage_began_at_s) / usual_s, 1.0), ""


def _stages(status: Status) -> Text:
    line = row("")
    for name, usual_s in status.usual_s.items():
        took = f" {brief(usual_s)}" if usual_s >= 0.5 else ""
        here = name == status.stage
        line.append(f"{'▸' if here else ' '}{safe(name)}{took} ", BOLD if here else DIM)
    return line if status.usual_s else row("", ("what stages take is known after the first", DIM))
