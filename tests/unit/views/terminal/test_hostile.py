"""Text of peers, models and files in every place where the view shows text."""

import dataclasses
import io
import unicodedata

import pytest
from rich.console import Console

from codezero.ledger.view import LedgerView, SubmissionView
from codezero.views.accounts import Accounts
from codezero.views.terminal.page import ViewOptions, lines
from codezero.views.terminal.snapshot import Message
from codezero.views.terminal.text import safe
from tests.unit.observe import test_cases
from tests.unit.views.terminal.builders import proposer, report, solver, status, verifier

HOSTILE = {
    "ansi": "\x1b[2J\x1b[31mred\x1b]0;title\x07",
    "c1 controls": "\x9b2J\x9d0;title\x9c",
    "markup": "[red]x[/red] [link=https://evil.example]click[/link] [/]",
    "osc 8 link": "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "bidi overrides": "a\u202eb\u2066c\u2069\u200f",
    "wide": "界" * 300,
    "newlines": "first\nsecond\r\nthird\u2028fourth\u2029fifth\x85sixth",
    "marks": "Z" + "\u0301\u0336\u20dd" * 500,
    "joined": "\U0001f468\u200d\U0001f469\u200d\U0001f467\ufe0f",
    "a megabyte": "x" * 1_000_000,
    "lone surrogate": "\ud800",
    "tabs": "a\tb\vc\fd",
    "wide spaces": "a\u3000b\u00a0c",
}


def everywhere(text):
    """Snapshots with the text in all fields that hold text."""
    last = report(
        1,
        reward_parts={text: 0.5},
        dropped={text: 1},
        external_groups={text: 1},
        num_external_groups=1,
        skipped=text,
        network=text,
        ledger=text,
        judge=text,
        market=text + "!",
    )
    told = status(
        peer_id=text,
        model=text,
        method=text,
        version=text,
        role=text,
        stage=text,
        usual_s={text: 3.0},
        ledger=text,
        network=text,
        peer_tasks=text,
        ended=text,
    )
    refused = SubmissionView(
        kind="vote", what=text, round=1, points=None, winners=(text,), reference=text, at_s=0, reason=text
    )
    accounts = Accounts(ledger=LedgerView(kind="modal", last_refused=refused, problems=(text,)))
    messages = [Message(at_s=0.0, text=text, warns=True)] * 5
    snapshot = solver(status=told, reports=[last], accounts=accounts, messages=messages, name=text)
    (batch,) = proposer().batches[:1]
    batch = dataclasses.replace(
        batch, reason=text, rejected={text: 1}, dropped={text: 1}, success={text: 0.5}, network=text, skipped=text
    )
    (cases,) = verifier().cases[:1]
    cases = dataclasses.replace(cases, dropped={text: 1}, skipped=text, solver=test_cases.solver(skipped=text))
    return [
        snapshot,
        dataclasses.replace(snapshot, pid=None),
        proposer(status=told, batches=[batch], messages=messages, name=text),
        verifier(status=told, cases=[cases], messages=messages, name=text),
    ]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(
    "choice", [ViewOptions(notice="x"), ViewOptions(chosen=2), ViewOptions(chosen=3), ViewOptions(chosen=1, log=True)]
)
def test_no_text_moves_the_cursor_changes_colours_or_breaks_a_line(name, choice):
    for page in (
        lines(everywhere(HOSTILE[name]), 80, 40, choice),
        lines(everywhere(HOSTILE[name])[:1], 80, 40, choice),
    ):
        assert len(page) == 40
        for line in page:
            assert line.cell_len <= 80
            assert not [c for c in line.plain if unicodedata.category(c)[0] == "C" or c in "\u2028\u2029\u3000"]
            assert not [span for span in line.spans if "link" in str(span.style) or "evil" in str(span.style)]
        out = io.StringIO()
        ink = Console(file=out, force_terminal=True, width=80, color_system="standard", _environ={})
        for line in page:
            ink.print(line, end="\n", soft_wrap=True, highlight=False)
        assert "\x1b]" not in out.getvalue()
        assert "\x1b[31mred" not in out.getvalue()


def test_markup_is_shown_as_it_was_written():
    (snapshot, *_) = everywhere(HOSTILE["markup"])
    page = "\n".join(line.plain for line in lines([snapshot], 200, 40, ViewOptions()))
    assert "[red]x[/red]" in page


def test_what_is_safe_stays_as_it_is():
    assert safe("plain text, 界 and é") == "plain text, 界 and é"
    assert safe("e\u0301") == "é"
    assert safe("a\nb") == "a\\nb"
    assert len(safe("x" * 1_000_000)) == 2001
