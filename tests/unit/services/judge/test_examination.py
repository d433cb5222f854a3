"""A question a round, beside the round: whatever the service or the policy does, the round goes on."""

import logging
import threading
import time

import pytest

from codezero.errors import Stopping
from codezero.services.judge import examination as module
from codezero.services.judge.client import JudgeService
from codezero.services.judge.examination import Examination
from tests.fakes import files_of_at_most
from tests.processes import wait_until
from tests.unit.evaluate.loopback import in_turn, never, reply, serve

QUESTION = reply(200, {"session_id": "s", "question": "1+1?"})
SCORED = reply(200, {"score": 0.75})


class Policy:
    def __init__(self, answer="2"):
        self.asked, self._answer = [], answer

    def answer(self, question):
        self.asked.append((question, threading.current_thread().name))
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "examined"


def examination(server, policy, notes, timeout_s=60.0):
    service = JudgeService(server.url, timeout_s=timeout_s)
    made = Examination(service, policy, peer_id="QmPeer", model_name="Qwen", notes=notes)
    made.start()
    return made


def test_the_score_of_a_round_is_handed_out_once(notes):
    policy = Policy()
    with serve(in_turn(QUESTION, SCORED)) as server:
        made = examination(server, policy, notes)
        assert made.take_score() is None
        made.begin(4)
        assert wait_until(made.take_score) == 0.75
        assert made.take_score() is None
        made.stop()
    assert policy.asked == [("1+1?", "examination")]
    assert server.bodies[0] == {"user_id": "QmPeer", "round_number": 4, "model_name": "Qwen"}
    assert server.bodies[1] == {"session_id": "s", "round_number": 4, "user_answer": "2"}


def test_a_round_that_is_played_again_after_a_kill_is_not_answered_twice(notes):
    with serve(in_turn(QUESTION, SCORED, QUESTION, SCORED)) as server:
        for rounds in ((4,), (3, 4, 5)):
            made = examination(server, Policy(), notes)
            for number in rounds:
                made.begin(number)
                wait_until(lambda made=made: not made._rounds)  # it is taken up
            assert wait_until(made.take_score) == 0.75
            made.stop()
    assert [body["round_number"] for body in server.bodies] == [4, 4, 5, 5]


def test_no_answer_is_sent_that_a_full_disk_could_make_come_twice(tmp_path):
    with serve(in_turn(QUESTION, SCORED)) as server:
        made = examination(server, Policy(), tmp_path)  # a folder cannot be written
        made.begin(4)
        assert "no answer is sent" in wait_until(lambda: made.trouble)
        made.stop()
    assert len(server.bodies) == 1


def test_a_full_disk_does_not_make_us_forget_which_round_was_answered(notes):
    notes.write_text("4\n")
    with serve(in_turn(QUESTION, SCORED)) as server:
        made = examination(server, Policy(), notes)
        with files_of_at_most(0):
            made.begin(5)
            assert "no answer is sent" in wait_until(lambda: made.trouble)
        made.stop()
    assert notes.read_text() == "4\n"


def test_rounds_that_pass_during_an_examination_are_left_out_but_the_last(notes):
    held = threading.Event()

    def slow(handler, count):
        held.wait(60)
        QUESTION(handler, count)

    with serve(in_turn(slow, SCORED, QUESTION, SCORED)) as server:
        made = examination(server, Policy(), notes)
        made.begin(1)
        wait_until(lambda: server.bodies)
        made.begin(2)
        made.begin(3)
        held.set()
        wait_until(lambda: len(server.bodies) == 4)
        made.stop()
    assert [body["round_number"] for body in server.bodies] == [1, 1, 3, 3]


def test_a_service_that_never_answers_keeps_no_round_waiting(notes, monkeypatch):
    monkeypatch.setattr(module, "STOP_S", 0.1)
    with serve(never) as server:
        made = examination(server, Policy(), notes, timeout_s=600.0)
        started = time.monotonic()
        made.begin(1)
        assert made.take_score() is None
        made.stop()
        assert time.monotonic() - started < 100


@pytest.mark.parametrize("first", [reply(500, b""), reply(200, {"question": []})], ids=["500", "nonsense"])
def test_a_round_without_a_score_is_followed_by_one_with_it(first, caplog, notes):
    with serve(in_turn(first, QUESTION, SCORED)) as server, caplog.at_level(logging.WARNING):
        made = examination(server, Policy(), notes)
        made.begin(1)
        assert wait_until(lambda: made.trouble).startswith("the judge service at http://127.0.0.1:")
        made.begin(2)
        assert wait_until(made.take_score) == 0.75
        assert made.trouble == ""
        made.stop()


def test_a_policy_that_fails_submits_nothing_and_ends_nothing(caplog, notes):
    with serve(QUESTION) as server:
        made = examination(server, Policy(RuntimeError("out of memory")), notes)
        for number in (1, 2):
            made.begin(number)
            wait_until(lambda number=number: caplog.text.count("out of memory") >= number)
        made.stop()
    assert set(server.paths) == {"/request-question/"}
    assert made.take_score() is None


def test_a_service_that_stays_away_is_warned_of_once(caplog, notes):
    with serve(reply(503, b"")) as server, caplog.at_level(logging.INFO):
        made = examination(server, Policy(), notes)
        for number in (1, 2, 3):
            made.begin(number)
            wait_until(lambda number=number: len(server.bodies) == number)
        made.stop()
    assert sum(record.levelno == logging.WARNING for record in caplog.records) == 1


def test_a_node_that_ends_is_no_trouble(caplog, notes):
    with serve(QUESTION) as server, caplog.at_level(logging.WARNING):
        made = examination(server, Policy(Stopping("the node ends")), notes)
        made.begin(1)
        wait_until(lambda: not made._worker.is_alive)
        made.stop()
    assert made.trouble == ""
    assert caplog.records == []
