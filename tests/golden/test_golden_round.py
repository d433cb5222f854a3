"""`preset=faithful` and the format of GenRL 0.3.0 stay as they are: a recorded round, played again by today's code."""

import json

import pytest

from tests.golden.record import FILE, REFRESH, differences, dumps, readable
from tests.golden.round import GENRL, play


@pytest.mark.usefixtures("restored_process")
def test_the_golden_round_is_played_as_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    golden = json.loads(FILE.read_text(encoding="utf-8"))
    found = [*differences(golden, json.loads(dumps(readable(play(golden[GENRL])))))]
    reason = f"a change here needs a reason in the commit message; refresh with `{REFRESH}`"
    assert not found, "\n".join(["the golden round is another one:", *found, reason])
