"""Programs that are kept running, with small real processes in the place of nodes."""

import errno
import io
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from codezero.errors import OUTAGE, NetworkError
from codezero.launch import supervisor as module
from codezero.launch.child import ChildProgram, ChildState, reports_in
from codezero.launch.supervisor import MAX_CRASHES, Supervisor
from codezero.runtime import rotation
from codezero.runtime.console import Console
from tests.processes import is_alive, wait_until_gone

HEAD = """\
import os, signal, subprocess, sys, time
left = int(sys.argv[1])
starts = open(__file__ + ".starts", "a+"); starts.seek(0); start = len(starts.readlines())
print(left, file=starts, flush=True)
rounds = __file__.replace(".py", ".jsonl")
def play(number):
    print(f"round {number} |", flush=True)
    with open(rounds, "a") as reports:
        print('{"round": %d, "start": %d}' % (number, start), file=reports)
"""


@pytest.fixture(autouse=True)
def restarts_soon(monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.01)


def program(folder, source, name="node-1", **settings):
    """A Python program that is given the rounds left; `start` is how often it has been started before."""
    script = folder / f"{name}.py"
    script.write_text(HEAD + textwrap.dedent(source))
    settings = {"log": folder / f"{name}.log", "reports": folder / f"{name}.jsonl", **settings}
    return ChildProgram(name=name, command=lambda left: [sys.executable, str(script), str(left)], **settings)


def starts(folder, name="node-1"):
    """What each process of a program was told are the rounds left."""
    return [int(line) for line in (folder / f"{name}.py.starts").read_text().splitlines()]


def supervised(*programs, **settings):
    """Runs programs to their end; returns them and the lines that were shown."""
    shown = io.StringIO()
    with Supervisor(Console(shown), **settings) as supervisor:
        children = [supervisor.add(each) for each in programs]
        supervisor.run()
    return children, shown.getvalue().splitlines()


def test_a_crashed_program_goes_on_with_the_rounds_that_are_left(tmp_path):
    source = """
    for number in range(left):
        play(number)
        if start == 0 and number == 1:
            sys.exit(3)
    """
    (child,), lines = supervised(program(tmp_path, source, rounds=5))
    assert starts(tmp_path) == [5, 3]
    assert (child.state, child.rounds) == (ChildState.DONE, 5)
    assert child.summary() == "done, 5 rounds, 1 restart"
    assert sum(line.startswith("node-1 | round ") for line in lines) == 5
    assert "node-1 | crashed: exit code 3; starts again in 0.01 s where it stopped" in lines
    assert lines[-1] == "node-1 | done, 5 rounds, 1 restart"


def test_what_a_program_prints_for_weeks_stays_within_bounds(tmp_path, monkeypatch):
    monkeypatch.setattr(rotation.rotate, "__defaults__", (100_000,))
    supervised(program(tmp_path, "for number in range(3000): print(f'line {number}', 'x' * 200, flush=True)"))
    newer, older = (tmp_path / name for name in ("node-1.log", "node-1.1.log"))
    assert max(newer.stat().st_size, older.stat().st_size) < 100_000 + 65536  # one read over
    assert {path.name for path in tmp_path.glob("*.log")} == {"node-1.log", "node-1.1.log"}
    assert "line 2999 " in newer.read_text() or "line 2999 " in older.read_text()


def test_a_program_without_a_limit_goes_on_without_one(tmp_path):
    (child,), _ = supervised(program(tmp_path, "play(1); sys.exit(start < 2)"))
    assert starts(tmp_path) == [0, 0, 0]
    assert (child.state, child.rounds) == (ChildState.STOPPED, 3)


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed by signal 9, Killed"),
        ("sys.exit('error: cannot save round 1: the disk is full')", "exit code 1"),
        (f"sys.exit({OUTAGE})", f"exit code {OUTAGE}"),
    ],
)
def test_a_program_that_fails_after_its_last_round_is_not_done_and_not_told_to_run_for_ever(tmp_path, end, how):
    (child,), lines = supervised(program(tmp_path, f"play(1); {end}", rounds=1))
    assert (child.state, starts(tmp_path)) == (ChildState.FAILED, [1])
    said = f"failed for good: {how}, after its last round: what it has not saved is played again at the next start; see"
    assert any(said in line for line in lines)


def test_a_program_that_always_crashes_is_given_up_while_others_go_on(tmp_path):
    bad = program(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)", name="bad")
    good = program(tmp_path, "time.sleep(2)\nplay(1)", name="good", rounds=1)
    (first, second), lines = supervised(bad, good)
    assert (first.state, second.state) == (ChildState.FAILED, ChildState.DONE)
    assert starts(tmp_path, "bad") == [0] * 5
    pauses = [line.split("again in ")[1] for line in lines if "starts again" in line]
    assert pauses == [f"{seconds} s where it stopped" for seconds in (0.01, 0.02, 0.04, 0.08)]
    assert any("bad  | failed for good: killed by signal 9, Killed, 5 crashes in a row" in line for line in lines)
    assert first.summary() == f"failed for good, 0 rounds, 4 restarts, see {tmp_path / 'bad.log'}"


def test_a_finished_round_makes_up_for_earlier_crashes(tmp_path):
    source = """
    if start in (3, 6):
        play(1)
    sys.exit(70 * (start != 8))
    """
    (child,), _ = supervised(program(tmp_path, source))
    assert len(starts(tmp_path)) == 9
    assert (child.state, child.rounds) == (ChildState.STOPPED, 2)


def test_an_error_that_a_program_tells_at_its_start_is_left_to_the_user(tmp_path):
    (child,), lines = supervised(program(tmp_path, "sys.exit('error: unknown setting x')"))
    assert (child.state, len(starts(tmp_path))) == (ChildState.FAILED, 1)
    assert "node-1 | error: unknown setting x" in lines
    assert any("failed for good: exit code 1, which would not go away by itself; see " in line for line in lines)


def test_an_error_after_progress_is_a_crash_too(tmp_path, monkeypatch):
    (child,), _ = supervised(program(tmp_path, "if start == 0:\n    play(1)\n    sys.exit('error: a full disk')"))
    assert (child.state, child.num_starts, child.rounds) == (ChildState.STOPPED, 2, 1)
    monkeypatch.setattr("codezero.launch.child.HEALTHY_S", 0.0)
    server = program(tmp_path, "sys.exit(start < 2 and 'error: no answer')", name="server", serves=True)
    until_then = f"""
    server = {str(tmp_path / "server.py.starts")!r}
    while not os.path.exists(server) or len(open(server).readlines()) < 3: time.sleep(0.05)
    """
    (child, _), _ = supervised(server, program(tmp_path, until_then, name="other"))
    assert child.num_starts == 3


def test_a_program_that_cannot_be_started_fails_for_good(tmp_path):
    missing = ChildProgram(name="node-1", command=lambda left: [str(tmp_path / "no")], log=tmp_path / "log")
    (child,), lines = supervised(missing)
    assert child.state is ChildState.FAILED
    said = "node-1 | crashed: cannot be started: No such file or directory; starts again in 0.01 s where it stopped"
    assert said in lines


def test_garbage_and_control_characters_cannot_reach_the_terminal_or_forge_lines(tmp_path):
    source = r"""
    out = sys.stdout.buffer
    out.write(b"\x1b[2J\x1b]0;owned\x07 \r\x08node-2 | round 9 | \x9b31m \xff\xfe \xe2\x80\xae reversed\n\n")
    out.write(b"\x00" * 100_000)
    out.write(b"\nlast words without an end")
    """
    (child,), lines = supervised(program(tmp_path, source))
    assert all(line.isprintable() and line.startswith("node-1 | ") for line in lines)
    assert r"\x1b[2J\x1b]0;owned\x07 \r\x08node-2 | round 9 |" in lines[0]
    assert "\\u202e reversed" in lines[0]
    assert max(map(len, lines)) <= 4 * 16 * 1024 + 100  # each of at most 16 Ki bytes is shown as \x00
    assert lines[-3] == "node-1 | last words without an end"
    assert child.rounds == 0
    assert (tmp_path / "node-1.log").read_bytes().startswith(b"\x1b[2J")
    assert (tmp_path / "node-1.log").stat().st_size > 100_000


def test_output_that_cannot_be_logged_does_not_end_the_swarm(tmp_path):
    (tmp_path / "node-1.log").mkdir()
    (child,), lines = supervised(program(tmp_path, "play(1)", rounds=1))
    assert child.state is ChildState.DONE
    assert lines == ["node-1 | round 1 |", "node-1 | done, 1 round"]


def test_a_program_that_ignores_the_request_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "GRACE_S", 0.3)
    source = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', os.getpid(), flush=True); time.sleep(600)"
    stubborn = program(tmp_path, source, name="stubborn", serves=True, ready="deaf ")
    shown = io.StringIO()
    with Supervisor(Console(shown)) as supervisor:
        child = supervisor.add(stubborn)
        supervisor.wait_until_ready(child, 300)
        supervisor.stop()
    assert child.summary() == "killed, since it did not stop when asked"
    deaf, killed = shown.getvalue().splitlines()
    assert not is_alive(int(deaf.split()[-1]))
    said = "killed: it did not stop within 0.3 s: what it has not saved is played again at the next start"
    assert killed == f"stubborn | {said}"


def test_what_serves_ends_after_the_others_and_does_not_keep_them_up(tmp_path):
    source = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print('here', flush=True); time.sleep(600)"
    server = program(tmp_path, source, name="server", serves=True)
    (first, second), _ = supervised(server, program(tmp_path, "play(1)", rounds=1))
    assert (first.state, second.state) == (ChildState.STOPPED, ChildState.DONE)


def test_what_a_killed_program_had_started_is_killed_too(tmp_path):
    source = """
    daemon = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print("daemon", daemon.pid, flush=True)
    if start:
        play(1)
    os.kill(os.getpid(), signal.SIGKILL)
    """
    _, lines = supervised(program(tmp_path, source, rounds=1))
    daemons = [int(line.split()[-1]) for line in lines if " daemon " in line]
    assert len(daemons) == 2
    wait_until_gone(daemons)


def test_an_error_of_the_supervisor_itself_leaves_no_process(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "GRACE_S", 0.3)
    source = "print('pid', os.getpid(), flush=True); time.sleep(600)"
    shown = io.StringIO()

    def use():
        with Supervisor(Console(shown)) as supervisor:
            supervisor.wait_until_ready(supervisor.add(program(tmp_path, source, ready="pid ")), 300)
            raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        use()
    assert not is_alive(int(shown.getvalue().split()[-1]))


class Unwritable(io.StringIO):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error


def test_a_terminal_that_is_gone_ends_the_programs(tmp_path):
    source = "open('pid', 'w').write(str(os.getpid())); print('here', flush=True); time.sleep(600)"
    with Supervisor(Console(Unwritable(BrokenPipeError()))) as supervisor:
        child = supervisor.add(program(tmp_path, source.replace("'pid'", repr(str(tmp_path / "pid")))))
        supervisor.run()
    assert child.state is ChildState.STOPPED
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_a_terminal_that_goes_leaves_the_programs_time_to_save(tmp_path):
    """bash sends two SIGHUPs, and the launcher cannot write that it stops."""
    source = """
    def save(*_):
        time.sleep(1)
        open(__file__ + ".saved", "w").close()
        sys.exit(0)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, save)
    for _ in range(2):
        os.kill(os.getppid(), signal.SIGHUP)
        time.sleep(0.2)
    time.sleep(600)
    """
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, under which the tests may run, has it ignored
    try:
        with Supervisor(Console(Unwritable(BrokenPipeError()))) as supervisor:
            child = supervisor.add(program(tmp_path, source))
            supervisor.run()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert child.state is ChildState.STOPPED
    assert (tmp_path / "node-1.py.saved").exists()


def test_a_full_disk_under_what_is_shown_ends_nothing(tmp_path):
    full = Unwritable(OSError(errno.ENOSPC, "No space left on device"))
    with Supervisor(Console(full)) as supervisor:
        child = supervisor.add(program(tmp_path, "play(1); time.sleep(1); play(2)", rounds=2))
        supervisor.run()
    assert child.state is ChildState.DONE


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("time.sleep(600)", r"not ready within 0 s"),
        ("print('error: port 1 is in use'); sys.exit(1)", r"port 1 is in use"),
    ],
)
def test_a_program_that_does_not_get_ready_is_an_error_with_its_reason(tmp_path, monkeypatch, source, reason):
    monkeypatch.setattr(module, "GRACE_S", 0.3)
    timeout_s = 0.3 if "sleep" in source else 300
    with (
        Supervisor(Console(io.StringIO())) as supervisor,
        pytest.raises(NetworkError, match=rf"the node-1 did not start \({reason}\): see .*node-1\.log"),
    ):
        supervisor.wait_until_ready(supervisor.add(program(tmp_path, source, ready="here")), timeout_s)


def test_signal_handlers_are_given_back(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    supervised(program(tmp_path, "pass"))
    assert signal.getsignal(signal.SIGINT) is before


def test_under_nohup_a_hangup_is_still_ignored(tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        (child,), _ = supervised(program(tmp_path, "os.kill(os.getppid(), signal.SIGHUP); play(1)", rounds=1))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert child.state is ChildState.DONE


def test_text_that_the_terminal_cannot_show_does_not_end_the_swarm(tmp_path):
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with Supervisor(Console(terminal)) as supervisor:
        supervisor.add(program(tmp_path, "print('\\u732b')", rounds=1))
        supervisor.run()
    assert terminal.buffer.getvalue().startswith(b"node-1 | \\u732b\n")


def test_programs_get_the_environment_and_the_open_files(tmp_path):
    with (tmp_path / "kept").open("w") as kept:
        source = f"print(os.environ['WHO'], file=open({kept.fileno()}, 'w'))"
        supervised(program(tmp_path, source), environment={**os.environ, "WHO": "me"}, kept_open=[kept.fileno()])
    assert (tmp_path / "kept").read_text() == "me\n"


def test_an_outage_that_a_program_tells_is_waited_out(tmp_path, monkeypatch):
    monkeypatch.setattr("codezero.launch.supervisor.MAX_PAUSE_S", 0.02)
    source = f"print('error: the RPC cannot be reached', flush=True)\nsys.exit({OUTAGE} if start < 7 else 0)"
    (child,), lines = supervised(program(tmp_path, source))
    assert (child.state, child.num_starts) == (ChildState.STOPPED, 8)
    assert not [line for line in lines if "failed for good" in line]
    assert "node-1 | that may pass; starts again in 0.02 s where it stopped" in lines


def test_rounds_of_earlier_runs_and_those_that_a_kill_takes_back_do_not_count(tmp_path):
    (tmp_path / "node-1.jsonl").write_text('{"round": 1}\n{"round": 2}\n')
    source = """
    if start == 0: [play(number) for number in (3, 4, 5)]
    else: open(rounds, "r+").truncate(len('{"round": 1}\\n'))
    sys.exit(70)
    """
    (child,), _ = supervised(program(tmp_path, source))
    assert (child.num_starts, child.rounds) == (MAX_CRASHES, 0)


def test_rounds_that_a_kill_takes_back_are_made_up_for(tmp_path):
    source = """
    if start == 1: open(rounds, "r+").truncate(len('{"round": 1, "start": 0}\\n'))
    for number in range(2 if start == 0 else left): play(number + 1)
    if start == 0: os.kill(os.getpid(), signal.SIGKILL)
    """
    (child,), _ = supervised(program(tmp_path, source, rounds=3))
    assert starts(tmp_path) == [3, 1, 1]
    assert (child.state, child.rounds) == (ChildState.DONE, 3)
    assert len((tmp_path / "node-1.jsonl").read_text().splitlines()) == 3


def test_reports_that_were_set_aside_or_torn_are_counted_right(tmp_path):
    path = tmp_path / "rounds.jsonl"
    assert reports_in(path) == reports_in(None) == set()
    path.write_bytes(b"a\nb\nto")
    assert len(reports_in(path)) == 2


LAUNCHER = """\
import sys
from codezero.launch import supervisor
from codezero.launch.child import ChildProgram
from codezero.runtime.console import Console
supervisor.FIRST_PAUSE_S, supervisor.GRACE_S = 60.0, float(sys.argv[2])
with supervisor.Supervisor(Console()) as launcher:
    launcher.add(ChildProgram(name="node", command=lambda left: [sys.executable, "-u", sys.argv[1], str(left)]))
    code = launcher.run()
sys.exit(code)
"""


def launched(folder, source, grace_s=60):
    """A launcher of one program that writes to the terminal itself; returns it with the program's process id."""
    script = folder / "node.py"
    script.write_text(HEAD + "print(os.getpid(), flush=True)\n" + textwrap.dedent(source))
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(script), str(grace_s)], stdout=subprocess.PIPE, text=True
    )
    return launcher, int(launcher.stdout.readline())


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("pass", 0, ""),
        ("sys.exit(1)", 1, "node | failed for good: exit code 1, which would not go away by itself\n"),
    ],
)
def test_a_program_on_the_terminal_ends_with_its_exit_code_and_no_more_words_than_needed(tmp_path, end, code, said):
    launcher, _ = launched(tmp_path, end)
    assert (launcher.communicate(timeout=120)[0], launcher.returncode) == (said, code)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_passed_on_and_the_program_not_started_again(tmp_path, number):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("whatever started the tests has them ignore this signal, as nohup does")
    source = "signal.signal(signal.SIGTERM, lambda *_: (print('bye'), sys.exit(0)))\nprint('up')\ntime.sleep(600)"
    launcher, pid = launched(tmp_path, source)
    assert launcher.stdout.readline() == "up\n"
    launcher.send_signal(number)
    assert launcher.communicate(timeout=120)[0] == "bye\n"
    assert launcher.returncode == 0
    assert not is_alive(pid)


def test_a_stop_whose_last_save_fails_is_told_by_the_exit_code(tmp_path):
    source = f"signal.signal(signal.SIGTERM, lambda *_: sys.exit({OUTAGE}))\nprint('up')\ntime.sleep(600)"
    launcher, _ = launched(tmp_path, source)
    assert launcher.stdout.readline() == "up\n"
    launcher.terminate()
    said = f"failed as it stopped: exit code {OUTAGE}: what it has not saved is played again at the next start"
    assert launcher.communicate(timeout=120)[0] == f"node | {said}\n"
    assert launcher.returncode == 1
    assert len(starts(tmp_path, "node")) == 1


def test_what_does_not_stop_in_time_is_killed_with_all_that_it_started(tmp_path):
    source = """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid)
    time.sleep(600)
    """
    launcher, pid = launched(tmp_path, source, grace_s=3)
    child = int(launcher.stdout.readline())
    launcher.terminate()
    said = "killed: it did not stop within 3 s: what it has not saved is played again at the next start"
    assert launcher.communicate(timeout=120)[0] == f"node | {said}\n"
    assert launcher.returncode == 1
    wait_until_gone([pid, child])


def test_a_program_does_not_outlive_a_launcher_that_is_killed(tmp_path):
    source = "from codezero.runtime.stop import stop_with_parent\nstop_with_parent()\nprint('up')\ntime.sleep(600)"
    launcher, pid = launched(tmp_path, source)
    assert launcher.stdout.readline() == "up\n"
    os.kill(launcher.pid, signal.SIGKILL)
    launcher.communicate(timeout=120)
    wait_until_gone([pid])


def test_a_stop_during_the_pause_is_answered_at_once(tmp_path):
    launcher, _ = launched(tmp_path, "time.sleep(0.2)\nsys.exit(70)")
    assert "starts again in 60 s" in launcher.stdout.readline()
    launcher.terminate()
    launcher.communicate(timeout=50)
    assert launcher.returncode == 0
    assert (tmp_path / "node.py.starts").read_text() == "0\n"
