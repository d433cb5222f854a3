"""What a node has left in its logs and its outbox."""

import dataclasses
import io
import json
import logging

import pytest

from codezero.doctor import state_folder
from codezero.errors import StateError
from codezero.ledger.items import LedgerScope
from codezero.ledger.local import LocalLedger
from codezero.ledger.outbox import Outbox
from codezero.observe.status import StatusFile, new_status
from codezero.runtime import logs, state
from codezero.runtime.console import Console
from codezero.types import RoundId
from tests.swarm_folder import proposer, round_report, verifier
from tests.unit.doctor.cases import case_of, told

AT = "2026-11-21T23:00:0{}.000Z"


def logged(tmp_path, *lines):
    (tmp_path / "logs").mkdir(exist_ok=True)
    (tmp_path / "logs" / "swarm.log").write_text("\n".join(lines) + "\n")
    return list(state_folder.check_log(case_of(tmp_path)))


def test_a_log_without_trouble_and_none(tmp_path):
    assert "it is not there" in told(state_folder.check_log(case_of(tmp_path)), "info")[0]
    assert told(logged(tmp_path, AT.format(1) + " INFO codezero.node: round 1 saved"), "ok")


def test_the_last_failure_is_told_with_its_time(tmp_path):
    found = logged(
        tmp_path,
        AT.format(1) + " ERROR codezero.x: an older one",
        AT.format(2) + " ERROR codezero.x: cannot save round 5 (No space left on device)",
        AT.format(3) + " INFO codezero.x: round 6",
    )
    assert "last failure at 2026-11-21T23:00:02Z: cannot save round 5 (No space" in told(found, "warning")[0]


def test_a_traceback_is_told_by_its_exception(tmp_path):
    found = logged(
        tmp_path,
        AT.format(1) + " ERROR codezero.x: older",
        AT.format(2) + " INFO codezero.x: round 6",
        "  Traceback (most recent call last):",
        '    File "node.py", line 3, in run',
        "  torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.2 GiB",
    )
    assert "at 2026-11-21T23:00:02Z: torch.OutOfMemoryError: CUDA out of memory" in told(found, "warning")[0]


def test_warnings_are_counted_and_the_last_is_shown(tmp_path):
    found = logged(tmp_path, *[AT.format(n) + f" WARNING codezero.x: number {n}" for n in range(5)])
    assert "5 warnings recently" in told(found, "info")[0]
    assert "number 4" in told(found, "info")[0]


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.usefixtures("restored_process")
def test_what_a_node_logs_is_found_again_in_either_format(tmp_path, as_json):
    """The writer and the reader of the log must agree on its form."""
    logs.set_up(tmp_path / "logs", "INFO", Console(io.StringIO()), as_json=as_json)
    logging.getLogger("codezero.x").warning("the hub is busy")
    logs.log_end(StateError("cannot save round 5"))
    found = list(state_folder.check_log(case_of(tmp_path)))
    assert "Z: ended: cannot save round 5" in told(found, "warning")[0]
    assert "1 warning recently" in told(found, "info")[0]
    assert "the hub is busy" in told(found, "info")[0]
    said = logging.getLogger("codezero.x").exception
    for error, fails in ((ValueError, logs.log_end), (MemoryError, lambda _: said("failed with \u2028forged"))):
        try:
            raise error("of a bug\n2026-01-01T00:00:00.000Z ERROR x: forged")
        except error as bug:
            fails(bug)
        (found,) = told(state_folder.check_log(case_of(tmp_path)), "warning")
        assert f"Z: {error.__name__}: of a bug" in found


def test_a_log_with_the_zeros_of_a_power_cut_is_read(tmp_path):
    found = logged(tmp_path, "\0" * 500 + AT.format(2) + " ERROR codezero.x: cannot save round 5")
    assert "cannot save round 5" in told(found, "warning")[0]


@pytest.mark.parametrize("text", ["\n" * 1000, "Traceback (most recent call last):", "x" * 3_000_000, "\udcff\u202e"])
def test_a_log_of_any_form(tmp_path, text):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "swarm.log").write_text(text, errors="surrogateescape", encoding="utf-8")
    list(state_folder.check_log(case_of(tmp_path)))


def rounds(tmp_path, reports, *settings):
    (tmp_path / "logs").mkdir(exist_ok=True)
    text = "".join(one if isinstance(one, str) else json.dumps(dataclasses.asdict(one)) + "\n" for one in reports)
    (tmp_path / "logs" / "rounds.jsonl").write_text(text)
    return list(state_folder.check_rounds(case_of(tmp_path, *settings)))


def report(number, **changes):
    return round_report(number, **{"skipped": None, "dropped": {}, **changes})


def test_rounds_that_are_fine(tmp_path):
    found = rounds(tmp_path, [report(n) for n in range(1, 9)], "swarm=native")
    assert not told(found, "warning")
    assert "the last one is 8, finished " in told(found, "info")[0]
    of_an_earlier_version = rounds(tmp_path, [report(8, finished_at_s=0.0)], "swarm=native")
    assert told(of_an_earlier_version, "info") == ["rounds: the last one is 8 |  | "]


def test_batches_of_other_roles(tmp_path):
    proposer(tmp_path, 12)
    verifier(tmp_path, 9, "all answers are worth the same")
    found = list(state_folder.check_rounds(case_of(tmp_path)))
    notes = told(found, "info")
    assert notes[0].startswith("proposer's batches: the last one is 12, finished ")
    assert notes[1].startswith("verifier's batches: the last one is 9, finished ")
    (fault,) = told(found, "warning")
    assert "9 of the last 9 batches made no update, 9 of them: all answers are worth the same" in fault
    (tmp_path / "logs" / "proposals.jsonl").unlink()
    assert "proposals.jsonl has no report" in told(state_folder.check_rounds(case_of(tmp_path)), "info")[0]


def test_each_role_has_a_log(tmp_path):
    proposer(tmp_path)
    (tmp_path / "logs" / "proposer.log").write_text(AT.format(2) + " ERROR codezero.x: cannot save batch 5\n")
    (fault,) = told(state_folder.check_log(case_of(tmp_path)), "warning")
    assert fault.startswith("proposer's log: last failure at 2026-11-21T23:00:02Z: cannot save batch 5")


def test_a_node_that_learns_nothing(tmp_path):
    found = rounds(tmp_path, [report(n, skipped="every group has equal rewards") for n in range(1, 7)])
    fault = told(found, "warning")[0]
    assert "6 of the last 6 rounds made no update, 6 of them: every group has equal rewards" in fault
    assert not told(rounds(tmp_path, [report(n, skipped="x" if n > 3 else None) for n in range(1, 7)]), "warning")


def test_a_node_that_is_alone_without_wanting_it(tmp_path):
    alone = report(1, num_external_groups=0, network="alone: none of 1 bootnodes answers", dropped={"group_size": 4})
    (fault,) = told(rounds(tmp_path, [alone] * 6, "swarm=native"), "warning")
    assert "none of the last 6 rounds learnt from another node: alone: none of 1 bootnodes" in fault
    assert "dropped: 4 group_size" in fault
    assert not told(rounds(tmp_path, [alone] * 6, "swarm=alone"), "warning")


def test_memory_that_grows(tmp_path):
    peaks = [report(n + 1, peak_rss_bytes=2**30 + n * 2**27) for n in range(20)]
    assert "the node's peak grew from 2.2 GiB to 3.4 GiB in 10 rounds" in told(rounds(tmp_path, peaks), "warning")[0]


def test_a_node_that_outgrows_its_plan(tmp_path):
    made = dataclasses.replace(new_status("solver", tmp_path / "state", tmp_path / "logs"), planned_bytes=2**20)
    with state.locked_state(tmp_path / "state"), StatusFile(tmp_path / "state", made):
        assert "the system may kill it" in told(rounds(tmp_path, []), "warning")[0]


def test_parts_that_wait(tmp_path):
    found = told(rounds(tmp_path, [report(1, ledger="the RPC is away", judge="down", market="closed")]), "warning")
    assert [text.partition(":")[0] for text in found] == ["ledger", "judge", "market"]


@pytest.mark.parametrize(
    "line", ["", "{", "[]", "5", '{"round": "x"}', '{"round": -1}', "[" * 5000, '{"round": 1, "peak_rss_bytes": "x"}']
)
def test_reports_of_any_form(tmp_path, line):
    rounds(tmp_path, [line + "\n", report(3)])
    assert rounds(tmp_path, [line + "\n"])


def outbox(tmp_path):
    (tmp_path / "state").mkdir()
    LocalLedger(tmp_path / "state" / "ledger.sqlite", "QmMe").close()
    box = Outbox(
        tmp_path / "state" / "outbox.sqlite", LedgerScope(chain_id=5, contract="0x" + "11" * 20, peer_id="QmMe")
    )
    box.credit(RoundId(number=3), 2.5, ["QmMe"])
    box.fold()
    box.close()


def test_rewards_that_wait_too_long(tmp_path, clock):
    outbox(tmp_path)
    clock.skip(5 * 3600)
    (fault,) = told(state_folder.check_outbox(case_of(tmp_path)), "warning")
    assert "2 wait, the oldest for 5 h 0 min: reward +2 of peer QmMe in round 3" in fault
    assert f"codezero status {tmp_path / 'state'}` lists them all" in fault
    assert "nothing is lost" in fault


def test_rewards_that_have_just_been_summed_up(tmp_path):
    outbox(tmp_path)
    assert told(state_folder.check_outbox(case_of(tmp_path)), "info")
    assert not told(state_folder.check_outbox(case_of(tmp_path)), "warning")


def test_an_outbox_that_is_none(tmp_path):
    (tmp_path / "state").mkdir()
    assert list(state_folder.check_outbox(case_of(tmp_path))) == []
    (tmp_path / "state" / "outbox.sqlite").write_text("x" * 5000)
    assert any("cannot read the outbox" in one for one in told(state_folder.check_outbox(case_of(tmp_path)), "warning"))
