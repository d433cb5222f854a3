"""The table of benchmarks.claims."""

import pytest

from benchmarks import claims


@pytest.mark.slow
def test_at_the_start_all_is_believed_but_no_claim_of_certainty(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(claims, "START", 0.0)
    monkeypatch.setattr(claims, "HELD_OUT", 8)
    claims.main(["--rounds", "1", "--state", str(tmp_path)])
    rows = [row.strip("| ").split(" | ") for row in capsys.readouterr().out.splitlines() if row.startswith("| ")][2:]
    assert [row[0] for row in rows] == ["0", "1"]
    assert rows[0][:4] == ["0", "100%", "0.00", "1.00"]
    assert [row[4] for row in rows] == ["0%", "0%"]
