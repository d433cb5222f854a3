"""The whole screen, as lines of text: pure functions of the snapshots, the user's choice and the terminal's size."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from codezero.observe.roles import PROPOSER, VERIFIER
from codezero.runtime.amounts import local
from codezero.views.terminal import nodes
from codezero.views.terminal.node import proposer_page, solver_page
from codezero.views.terminal.snapshot import Message, Snapshot
from codezero.views.terminal.text import BAD, BOLD, DIM, fit, row, safe, sides, wrapped
from codezero.views.terminal.verifier import verifier_page

MIN_MESSAGES = 3
PLAIN_WIDTH = 120
"""The width in cells by which `plain` lays out columns."""
_HELP = """\
Reward is the mean over the last round's own solutions, from -1.2 to 1.2; below it are its parts, which add up to it.

pass@k is the share of tasks with at least one right solution of k, average@k the share of right solutions, both as the
evaluator believes (it runs nothing unless evaluator.backend=execution).

local are groups of own solutions, external those of peers that were trained on, dropped what was left out, and why.
unverified are solutions for which only tests that their authors were shown speak.

q or Ctrl-C stops a node; its finished rounds are saved. Ctrl-Z suspends it where codezero run was started directly.
Where the view only looks on, q leaves it.
l shows the messages whole; arrows, PgUp, PgDn, Home and End scroll there, and choose among several nodes elsewhere.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions:
    """The user's choices for the view."""

    chosen: int = 0
    """The index of the shown node, of several."""
    log: bool = False
    """True if messages fill the whole screen."""
    help: bool = False
    up: int = 0
    """The number of lines by which the log is scrolled back from the newest."""
    quits: str = "stop"
    """The word for the effect of the key q: stopping the node, or leaving it running."""
    notice: str = ""


def render(snapshot: Snapshot, width: int, height: int) -> Text:
    """Returns one node's screen as one text, for any rich console."""
    return Text("\n", no_wrap=True).join(lines([snapshot], width, height, ViewOptions()))


def lines(snapshots: Sequence[Snapshot], width: int, height: int, choice: ViewOptions) -> list[Text]:
    """Returns exactly `height` lines of at most `width` cells."""
    chosen = min(choice.chosen, len(snapshots) - 1)
    shown = snapshots[chosen]
    foot = _foot(choice, len(snapshots), width)
    room = max(height - 1, 0)
    if choice.help:
        texts = [piece for text in _HELP.splitlines() for piece in textwrap.wrap(text, max(width, 10)) or [""]]
        body = [fit(Text(text), width) for text in texts][:room]
    elif choice.log:
        body = _log(shown, width, room, choice.up)
    else:
        body = []
        if len(snapshots) > 1:
            body = [*nodes.table(snapshots, chosen, width, max(room // 3, 2)), _rule("", width)]
        body = _fitted([*body, *_page(shown, width)], room - MIN_MESSAGES - 1)
        left = room - len(body)
        body += _messages(shown, width, left)
    return [fit(line, width) for line in [*(body + [Text("")] * room)[:room], foot][:height]]


def plain(snapshot: Snapshot) -> list[str]:
    """Returns one node's page and its last warning as lines of any length, for output that is not a screen."""
    warnings = [row("Warning", f"{local(one.at_s)} {safe(one.text)}") for one in snapshot.messages if one.warns]
    return [line.plain.rstrip() for line in [*_page(snapshot, PLAIN_WIDTH), *warnings[-1:]] if line.plain]


def _page(snapshot: Snapshot, width: int) -> list[Text]:
    page = {PROPOSER: proposer_page, VERIFIER: verifier_page}.get(snapshot.role, solver_page)
    return page(snapshot, width)


def _fitted(page: list[Text], room: int) -> list[Text]:
    """Returns at most `room` lines of the page, without blank lines, the last ones first, and then without its end."""
    while len(page) > room and (blanks := [number for number, line in enumerate(page) if not line.plain]):
        page = page[: blanks[-1]] + page[blanks[-1] + 1 :]
    return page[: max(room, 0)]


def _messages(snapshot: Snapshot, width: int, room: int) -> list[Text]:
    """Returns the newest messages in at most `room` lines."""
    if room < 2:
        return []
    newest = list(snapshot.messages[-(room - 1) :])
    warnings = [message for message in snapshot.messages if message.warns]
    if warnings and warnings[-1] not in newest:
        newest[0] = warnings[-1]  # the latest warning is always shown
    return [_rule("messages", width), *(fit(_message(message), width) for message in newest)]


def _log(snapshot: Snapshot, width: int, room: int, up: int) -> list[Text]:
    """Returns at most `room` lines of messages at full length, the newest at the bottom."""
    found = _wrapped(snapshot, width)
    end = max(len(found) - up, min(room, len(found)))
    return found[max(0, end - room) : end]


def most_up(snapshot: Snapshot, width: int, height: int) -> int:
    """Returns by how many lines the log can be scrolled back on a screen of this size."""
    return max(len(_wrapped(snapshot, width)) - max(height - 1, 0), 0)


def _wrapped(snapshot: Snapshot, width: int) -> list[Text]:
    found: list[Text] = []
    for message in snapshot.messages:
        style = BAD if message.warns else ""
        found += [Text(piece, style) for piece in wrapped(_message(message).plain, width)]
    return found


def _message(message: Message) -> Text:
    at = time.strftime("%H:%M:%S", time.localtime(message.at_s))
    text = f"{'! ' if message.warns else ''}{safe(message.text)}"
    return Text.assemble((f"{at} ", DIM), (text, BAD if message.warns else ""))


def _rule(title: str, width: int) -> Text:
    return Text(f"── {title} ".ljust(width, "─")[:width] if title else "─" * width, DIM)


def _foot(choice: ViewOptions, num_nodes: int, width: int) -> Text:
    keys = [f"q {choice.quits}", "l back" if choice.log else "l log", "? back" if choice.help else "? help"]
    if choice.log:
        keys.insert(2, "↑↓ scroll")
    elif num_nodes > 1:
        keys.insert(2, "↑↓ choose")
    return sides(Text("   ".join(keys), DIM), Text(safe(choice.notice), BOLD), width)
