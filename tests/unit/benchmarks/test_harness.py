import json
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from benchmarks import evaluations, harness, measure
from benchmarks.harness import ROOT, Arm, Target
from benchmarks.power import of_mean
from tests.unit.benchmarks.builders import folders

ARM = Arm(
    benchmark="trivial",
    name="one",
    settings={"size": 3, "parts": (1, 2)},
    seed=7,
    pieces=["a", "b", "c", "d"],
    power=[of_mean("speed", 100, 0.5)],
    targets=[Target(figure="speed", at_least=0.5)],
)


def options(tmp_path, *words):
    return harness.parser("trivial", "Does nothing.").parse_args([*folders(tmp_path), *words])


def run(tmp_path, *words, arm=ARM, ends=None):
    """The result, and the pieces that were done for it; `ends` is raised in place of piece c."""
    done = []

    def do(piece):
        if ends and piece == "c":
            raise ends
        done.append(piece)
        return {"letters": [piece, piece], "n": 1}

    return harness.run(arm, do, options(tmp_path, *words)), done


def kept_pieces(tmp_path):
    (path,) = (tmp_path / "state" / "trivial").glob("one-*.jsonl")
    return path


def test_the_file_of_an_arm_has_all_that_is_needed_to_believe_it(tmp_path):
    made, done = run(tmp_path)
    assert done == ["a", "b", "c", "d"]
    path = tmp_path / "results" / "trivial" / "one.json"
    assert harness.read(path) == replace(made, settings={"size": 3, "parts": [1, 2]})
    found = json.loads(path.read_text())
    assert (found["seed"], found["counts"]["d"]) == (7, {"letters": ["d", "d"], "n": 1})
    assert found["targets"] == [{"figure": "speed", "at_least": 0.5, "at_most": None}]
    (sitting,) = found["sittings"]
    assert sitting["machine"].keys() >= {"cpu", "isa", "cores", "memory_gib"}
    assert sitting.keys() >= {"commit", "dirty", "wall_s", "cpu_s", "others_cpu_s", "load"}
    assert list((tmp_path / "state" / "trivial").iterdir()) == []


def test_an_arm_with_more_pieces_goes_on_from_its_result(tmp_path):
    first, _ = run(tmp_path, arm=replace(ARM, pieces=["a", "b"]))
    made, done = run(tmp_path)
    assert done == ["c", "d"]
    assert list(made.counts) == ["a", "b", "c", "d"]
    assert made.sittings[0] == first.sittings[0]
    assert len(made.sittings) == 2


def test_a_call_with_fewer_or_other_pieces_loses_none_that_are_there(tmp_path, capsys):
    made, _ = run(tmp_path)
    same, done = run(tmp_path, arm=replace(ARM, pieces=["b"]))
    assert (same.counts, same.sittings, done) == (made.counts, made.sittings, [])
    assert "done already" in capsys.readouterr().out
    more, done = run(tmp_path, arm=replace(ARM, pieces=["d", "e"]))
    assert (list(more.counts), done) == (["a", "b", "c", "d", "e"], ["e"])
    assert "goes on: 4 of 5 pieces are done" in capsys.readouterr().out
    assert harness.read(tmp_path / "results" / "trivial" / "one.json").counts == more.counts


def test_a_stopped_call_goes_on_with_other_pieces(tmp_path):
    with pytest.raises(SystemExit):
        run(tmp_path, ends=KeyboardInterrupt())
    made, done = run(tmp_path, arm=replace(ARM, pieces=["a", "c", "e"]))
    assert (list(made.counts), done) == (["a", "b", "c", "e"], ["c", "e"])
    assert len(made.sittings) == 2


def test_power_is_said_before_the_first_piece(tmp_path, capsys):
    def do(piece):
        printed.append(capsys.readouterr().out)

    printed = []
    harness.run(ARM, do, options(tmp_path))
    assert "speed: 100 problems, standard deviation 0.5: differences from 0.14 on show in 80% of runs" in printed[0]


CHILD = """
import sys
from benchmarks import harness
from tests.unit.benchmarks.test_harness import ARM, options
from pathlib import Path

def do(piece):
    print(piece, flush=True)
    if piece == "c":
        sys.stdin.read()
    return {"letters": [piece, piece], "n": 1}

harness.run(ARM, do, options(Path(sys.argv[1])))
"""


def test_what_was_done_before_a_kill_is_not_done_again(tmp_path, capsys):
    with subprocess.Popen(
        (sys.executable, "-c", CHILD, str(tmp_path)), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        while child.stdout.readline() != "c\n":
            assert child.poll() is None
        child.send_signal(signal.SIGKILL)
    assert kept_pieces(tmp_path).read_bytes().count(b"\n") == 2
    made, done = run(tmp_path)
    assert done == ["c", "d"]
    assert list(made.counts) == ["a", "b", "c", "d"]
    assert len(made.sittings) == 2
    assert "goes on: 2 of 4 pieces are done" in capsys.readouterr().out


def test_a_line_torn_by_a_kill_is_done_again(tmp_path):
    with pytest.raises(SystemExit):
        run(tmp_path, ends=KeyboardInterrupt())
    with kept_pieces(tmp_path).open("ab") as file:
        file.write(b'["c", {"letters": ["c')
    with pytest.raises(SystemExit):
        run(tmp_path, ends=KeyboardInterrupt())
    assert run(tmp_path)[1] == ["c", "d"]


def test_a_damaged_line_is_not_skipped(tmp_path):
    with pytest.raises(SystemExit):
        run(tmp_path, ends=KeyboardInterrupt())
    path = kept_pieces(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"wall_s"', b'"wall"').replace(b'"load"', b'"lead"'))
    with pytest.raises(SystemExit, match=r"is damaged .*load.* take it away to begin this arm again"):
        run(tmp_path)


def test_ctrl_c_says_where_the_pieces_are_and_an_error_loses_none(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        run(tmp_path, ends=KeyboardInterrupt())
    assert stopped.value.code == 130
    assert f"stopped: 2 pieces are in {kept_pieces(tmp_path)}" in capsys.readouterr().err
    with pytest.raises(OSError, match="disk"):
        run(tmp_path, ends=OSError("disk"))
    assert run(tmp_path)[1] == ["c", "d"]


def test_a_result_that_is_there_is_made_again_only_where_something_changed_or_it_is_asked_for(tmp_path, capsys):
    first, _ = run(tmp_path)
    same, done = run(tmp_path)
    assert (same.sittings, done) == (first.sittings, [])
    assert "done already: " in capsys.readouterr().out
    assert run(tmp_path, "--again")[1] == ["a", "b", "c", "d"]
    assert run(tmp_path, arm=replace(ARM, settings={"size": 4}))[1] == ["a", "b", "c", "d"]
    assert run(tmp_path, arm=replace(ARM, settings={"size": 4}, seed=8))[1] == ["a", "b", "c", "d"]


def test_pieces_done_with_other_settings_are_not_mixed_in(tmp_path):
    with pytest.raises(SystemExit):
        run(tmp_path, ends=KeyboardInterrupt())
    assert run(tmp_path, arm=replace(ARM, settings={"size": 4}))[1] == ["a", "b", "c", "d"]


def test_two_processes_do_not_run_the_same_arm(tmp_path):
    with pytest.raises(SystemExit, match="another process runs this arm"):
        harness.run(ARM, lambda piece: run(tmp_path), options(tmp_path))


def test_a_damaged_result_says_what_to_do(tmp_path):
    run(tmp_path)
    path = tmp_path / "results" / "trivial" / "one.json"
    path.write_text(path.read_text().replace('"seed": 7', '"seed": "seven"'))
    with pytest.raises(SystemExit, match=r"one\.json is no result of a benchmark .*seed.*run the benchmark again"):
        run(tmp_path)


def test_other_work_beside_a_run_is_recorded_and_told(tmp_path, monkeypatch, capsys):
    times = {"busy": 0.0, "own": 0.0}
    monkeypatch.setattr(measure, "busy_s", lambda: times["busy"])
    monkeypatch.setattr(measure, "own_s", lambda: times["own"])

    def do(piece):
        times["busy"] += 3600
        times["own"] += 1

    (sitting,) = harness.run(ARM, do, options(tmp_path)).sittings
    assert (sitting.cpu_s, sitting.others_cpu_s) == (4, 4 * 3599)
    assert "other work took 100% of the machine" in capsys.readouterr().out
    calm = replace(sitting, wall_s=10, others_cpu_s=2.5 * sitting.machine.cores)
    assert harness.described([calm]).endswith("other work took 25% of the machine")


def test_what_children_compute_is_own_work():
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    before = measure.own_s()
    subprocess.run((sys.executable, "-c", burn), check=True)
    assert measure.own_s() - before >= 0.29
    with subprocess.Popen(
        (sys.executable, "-c", f"{burn}\nprint(flush=True)\ninput()"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        assert measure.own_s() - before >= 0.58


def test_an_evaluation_is_made_once_for_the_same_weights_and_settings(tmp_path):
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(b"\0" * 4096)
    made = []

    def evaluated(**settings):
        def evaluate():
            made.append(settings)
            return {"right": len(made)}

        return evaluations.evaluated(weights, settings, evaluate, tmp_path / "kept")

    assert evaluated(samples=4, seed=0) == evaluated(seed=0, samples=4) == {"right": 1}
    assert evaluated(samples=8, seed=0) == {"right": 2}
    (weights / "model.safetensors").write_bytes(b"\0" * 4095 + b"\1")
    assert evaluated(samples=4, seed=0) == {"right": 3}
    (weights / "model.safetensors").rename(weights / "other.safetensors")
    assert evaluated(samples=4, seed=0) == {"right": 4}
    assert evaluated(samples=4, seed=0) == {"right": 4}


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()], ids=["nothing there", "empty"])
def test_weights_that_are_not_there_are_no_key(tmp_path, make):
    make(tmp_path / "weights")
    with pytest.raises(FileNotFoundError):
        evaluations.evaluated(tmp_path / "weights", {}, lambda: 1, tmp_path / "kept")


def test_an_evaluation_that_fails_is_not_kept(tmp_path):
    weights = tmp_path / "weights"
    weights.write_bytes(b"1")
    with pytest.raises(ZeroDivisionError):
        evaluations.evaluated(weights, {}, lambda: 1 / 0, tmp_path)
    assert evaluations.evaluated(weights, {}, lambda: 2, tmp_path) == 2
