"""Processes that parse strangers' text: what kills one costs one job, and nothing of it outlives its node."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import psutil
import pytest

from codezero.errors import WorkerError
from codezero.workers import Cause, Death, Workers, pool, process
from codezero.workers.job import MAX_FRAME_BYTES
from tests.processes import is_alive, wait_until_gone
from tests.unit.workers.killers import ECHO, KILL, LATE_BOMB, PID, ROOM

KILLERS = "tests.unit.workers.killers"


@pytest.fixture(scope="module")
def workers():
    with Workers(2, KILLERS) as started:
        yield started


@pytest.fixture(scope="module")
def one():
    with Workers(1, KILLERS) as started:
        yield started


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ("signal", Cause.SIGNAL),
        ("null", Cause.SIGNAL),
        ("deep_in_c", Cause.PROCESSOR),
        ("memory", Cause.MEMORY),
        ("flood", Cause.GARBLED),
        ("two", Cause.GARBLED),
        ("half", Cause.GARBLED),
        ("closed", Cause.GARBLED),
        ("noise", Cause.GARBLED),
        ("nested", Cause.GARBLED),
        ("wrong_type", Cause.GARBLED),
        ("from_outside", Cause.OUTSIDE),
        ("fault", Cause.ERROR),
    ],
)
def test_what_ends_a_worker_is_told_by_its_cause_and_the_next_job_is_done(monkeypatch, one, how, cause):
    monkeypatch.setattr(pool, "WALL_MARGIN_S", 600.0)  # a second of processor time may take long
    death = one.submit(KILL, how, cpu_s=1 if how == "deep_in_c" else 60).result()
    assert isinstance(death, Death)
    assert death.cause is cause
    assert death.is_jobs_fault is (cause not in (Cause.OUTSIDE, Cause.ERROR))
    assert one.submit(ECHO, "next", cpu_s=1).result() == "next"


def test_a_job_that_hangs_is_ended_by_the_wall_clock_and_that_is_not_its_fault(monkeypatch, one):
    monkeypatch.setattr(pool, "WALL_MARGIN_S", 0.2)
    death = one.submit(KILL, "sleep", cpu_s=0.1).result()
    assert (death.cause, death.is_jobs_fault) == (Cause.WALL_CLOCK, False)
    monkeypatch.undo()
    assert one.submit(ECHO, "next", cpu_s=1).result() == "next"


def test_what_a_job_leaves_behind_ends_its_own_worker(one):
    assert one.submit(LATE_BOMB, "", cpu_s=1).result() == Death(Cause.SIGNAL, "SIGSEGV")


def test_a_fault_of_ours_is_logged_in_plain_text_once(caplog):
    with Workers(1, KILLERS) as pool_:
        for _ in range(2):
            pool_.submit(KILL, "fault", cpu_s=1).result()
    assert caplog.text.count("KeyError in killers.py") == 1
    assert "\x1b" not in caplog.text


def test_a_worker_has_no_model_no_key_no_environment_no_network_and_can_open_nothing(one):
    found = one.submit(ROOM, "", cpu_s=1).result().words
    assert found["heavy"] == ""
    assert set(found["environment"].split()) <= {"PYTHONHASHSEED", "MALLOC_ARENA_MAX", "LC_CTYPE", "LD_LIBRARY_PATH"}
    assert (found["open"], found["socket"], found["write"]) == ("OSError",) * 3
    assert (found["folder"], found["core"]) == ("/", "0")
    if sys.platform == "linux":
        assert found["memory"] == str(process.MEMORY_BYTES)


def test_every_worker_has_the_same_hashes_so_that_sets_have_the_same_order(workers):
    found = {one.submit(ROOM, "", cpu_s=1, fresh=True).result().words["hash"] for one in [workers] * 4}
    assert len(found) == 1


def test_answers_go_to_those_who_asked(workers):
    texts = [str(n) * (1 + 5_000 * (n % 7)) for n in range(200)]
    asked = [workers.submit(ECHO, text, cpu_s=5) for text in texts]
    assert [one.result() for one in asked] == texts


def test_many_threads_may_ask_at_once(workers):
    found = {}

    def ask(name):
        found[name] = [workers.ask(ECHO, f"{name}/{n}", cpu_s=5) for n in range(20)]

    threads = [threading.Thread(target=ask, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {name: [f"{name}/{n}" for n in range(20)] for name in range(8)}


def test_a_message_larger_than_the_pipe_holds_goes_both_ways(one):
    text = "é" * (4 << 20)
    assert one.submit(ECHO, text, cpu_s=20).result() == text


@pytest.mark.parametrize("text", ["x" * (MAX_FRAME_BYTES + 1), "\ud800"], ids=["too large", "no Unicode"])
def test_a_request_that_cannot_be_sent_has_no_answer_and_costs_no_worker(one, text):
    before = one.pids
    assert one.submit(ECHO, text, cpu_s=1).result().cause is Cause.ERROR
    assert one.pids == before


def test_a_worker_is_replaced_after_so_many_jobs(monkeypatch, one):
    monkeypatch.setattr(process, "MAX_JOBS", 3)
    pids = [one.submit(PID, "", cpu_s=1, fresh=n == 0).result() for n in range(7)]
    assert [len(set(pids[:3])), len(set(pids[3:6])), len(set(pids))] == [1, 1, 3]


def test_a_fresh_worker_has_had_no_other_job(one):
    pids = [one.submit(PID, "", cpu_s=1, fresh=fresh).result() for fresh in (True, True, False)]
    assert (pids[0] != pids[1], pids[1] == pids[2]) == (True, True)


def test_a_worker_that_dies_between_two_jobs_is_replaced_silently(one):
    pid = one.submit(PID, "", cpu_s=1).result()
    os.kill(pid, signal.SIGKILL)
    wait_until_gone([pid])
    assert one.submit(ECHO, "next", cpu_s=1).result() == "next"


def test_a_worker_that_is_killed_as_it_starts_is_started_once_more(monkeypatch, one):
    starts, start = [], process.WorkerProcess._start

    def killed_at_first(self):
        start(self)
        starts.append(self.pid)
        if len(starts) == 1:
            os.kill(self.pid, signal.SIGKILL)

    monkeypatch.setattr(process.WorkerProcess, "_start", killed_at_first)
    assert one.submit(ECHO, "first", cpu_s=1, fresh=True).result() == "first"
    assert one.submit(ECHO, "next", cpu_s=1, fresh=True).result() == "next"
    assert len(starts) >= 2


def test_a_killer_is_tried_twice_before_that_is_said_of_it(monkeypatch, one):
    tried, ask = [], process.WorkerProcess.ask

    def noted(self, frame, wall_s, fresh):
        tried.append(fresh)
        return ask(self, frame, wall_s, fresh)

    monkeypatch.setattr(process.WorkerProcess, "ask", noted)
    assert one.ask(KILL, "signal", cpu_s=1).cause is Cause.SIGNAL
    assert tried == [False, True]


def test_the_end_of_a_pool_is_the_end_of_its_workers_also_of_busy_ones():
    pool_ = Workers(2, KILLERS)
    busy = pool_.submit(KILL, "sleep", cpu_s=100)
    waiting = [pool_.submit(KILL, "sleep", cpu_s=100) for _ in range(3)]
    pids = pool_.pids
    started = time.monotonic()
    pool_.close()
    assert time.monotonic() - started < 20
    assert not any(is_alive(pid) for pid in pids)
    assert not [child for child in psutil.Process().children() if child.pid in pids]
    assert isinstance(busy.exception(), WorkerError)
    assert all(one.cancelled() or isinstance(one.exception(), WorkerError) for one in waiting)


PARENT = """
import sys, time
from codezero.workers import Workers
from tests.unit.workers.killers import KILL

workers = Workers(2, "tests.unit.workers.killers")
asked = [workers.submit(KILL, how, cpu_s=60) for how in ("sleep", "deep_in_c")]
try:
    print(*workers.pids, flush=True)
    asked[0].result()
except KeyboardInterrupt:
    workers.close()
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_no_worker_outlives_its_node_however_that_ends(sent):
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(PARENT)], stdout=subprocess.PIPE) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        # whoever started the tests may ignore SIGINT, which children inherit
        parent.send_signal(sent)
        if sent is signal.SIGINT and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            parent.kill()
    wait_until_gone(pids)


def test_workers_that_cannot_start_are_an_error_that_says_why():
    with pytest.raises(WorkerError, match=r"does not start \(ModuleNotFoundError: No module named 'tests.nothing'\)"):
        Workers(1, "tests.nothing")


def test_a_machine_without_a_python_to_start_is_an_error_that_says_what_to_see_to(monkeypatch):
    monkeypatch.setattr(process.sys, "executable", "/nowhere/python")
    with pytest.raises(WorkerError, match="ulimit"):
        Workers(1, KILLERS)


def test_a_machine_without_a_place_for_complaints_is_an_error_that_says_what_to_see_to(monkeypatch):
    def full():
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(process.tempfile, "TemporaryFile", full)
    with pytest.raises(WorkerError, match="no usable temporary directory"):
        Workers(1, KILLERS)


def test_where_the_kernel_does_not_limit_memory_the_node_looks_at_it(monkeypatch):
    monkeypatch.setattr(process.kernel, "IS_LINUX", False)
    with Workers(1, KILLERS) as watched:
        monkeypatch.setattr(process, "MEMORY_BYTES", 1 << 20)
        assert watched.submit(KILL, "sleep", cpu_s=10).result() == Death(Cause.MEMORY)


@pytest.mark.parametrize(
    ("wanted", "gib", "cores", "expected"),
    [(0, 6.5, 8, 1), (0, 13, 8, 2), (0, 100, 2, 2), (0, 100, 64, 8), (0, 1, 4, 1), (5, 6, 2, 5)],
    ids=["8 GB", "16 GB", "two cores", "a server", "little memory", "as set"],
)
def test_how_many_workers_a_node_takes(monkeypatch, wanted, gib, cores, expected):
    monkeypatch.setattr(pool.limits, "usable_cores", lambda logical: cores)
    assert pool.num_workers(wanted, int(gib * 2**30), on_gpu=False) == expected


@pytest.mark.parametrize(
    ("wanted", "gib", "share", "expected"),
    [(0, 100, 0, 32), (0, 100, 4, 4), (0, 7, 0, 10), (3, 7, 0, 3)],
    ids=["all cores", "a share of them", "little memory", "as set"],
)
def test_beside_a_gpu_every_core_reads_solutions(monkeypatch, wanted, gib, share, expected):
    monkeypatch.setattr(pool.limits, "usable_cores", lambda logical: 32)
    assert pool.num_workers(wanted, gib << 30, on_gpu=True, cores=share) == expected
