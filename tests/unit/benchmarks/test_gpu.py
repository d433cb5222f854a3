"""benchmarks/gpu.sh, on the CPU."""

import json
import logging
import subprocess

import pytest

from benchmarks import gpu
from benchmarks.harness import ROOT
from tests.unit.benchmarks.builders import folders


@pytest.mark.usefixtures("restored_process")
@pytest.mark.parametrize(("piece", "says"), [("decode tiny 8", " tokens/s"), ("update tiny lora", " planned")])
def test_a_tiny_model_decodes_and_learns(tmp_path, piece, says, monkeypatch, capsys):
    monkeypatch.setattr(logging.root.manager, "disable", logging.NOTSET)  # as it is again afterwards
    gpu.main([piece, "--alone", "--state", str(tmp_path), "--device", "cpu"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert says in "".join(gpu.cells(piece, found)[1:])


@pytest.mark.slow
def test_a_tiny_model_is_killed_and_resumed(tmp_path):
    command = ["benchmarks/gpu.sh", "--tiny", "rounds tiny full", *folders(tmp_path), "--device", "cpu"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " killed and resumed |" in done.stdout.splitlines()[-1]
    assert not (tmp_path / "results").exists()  # a piece alone does not take the place of a whole result


def test_a_piece_that_fails_is_told_in_its_row():
    assert gpu.cells("rounds 0.5B full", {"error": "ended with 1; no output"})[1] == "ended with 1; no output"


def test_an_unknown_piece_is_refused(capsys):
    with pytest.raises(SystemExit):
        gpu.main(["rounds tiny neither"])
    assert "rounds tiny neither is no piece: choose from decode 0.5B 8" in capsys.readouterr().err


def test_only_the_real_shapes_have_targets():
    found = {"tokens": 64 * gpu.TOKENS, "steps": gpu.TOKENS, "wall_s": 1.0, "waits": 16, "bytes": 2**30}
    assert gpu.cells("decode 0.5B 64", found)[1:] == [
        "8,192 tokens/s, at least 10,000: **missed**",
        "1.0 GiB",
        "0.12 a step, at most 0.06: **missed**",
    ]
    assert gpu.cells("decode tiny 8", found)[1:] == ["8,192 tokens/s", "1.0 GiB", "0.12 a step"]
    learnt = {"wall_s": 1.5, "bytes": 9 * 2**30, "planned": 10 * 2**30, "waits": 1}
    assert gpu.cells("update 0.5B full", learnt)[1:] == [
        "1.50 s, at most 2 s: met",
        "9.0 GiB of 10.0 planned, at most 10: met",
        "1",
    ]


@pytest.mark.parametrize(("numbers", "said"), [([1, 2, 2, 3], "killed and resumed"), ([1, 2, 4], "**not resumed**")])
def test_rounds_that_are_missing_are_told(numbers, said):
    found = [{"round": number, "seconds": {"solve": 1.0}} for number in numbers]
    assert said in gpu.cells("rounds 0.5B full", found)[1]
