import subprocess
import sys

import pytest

from codezero.cli import main
from codezero.swarm import UpOptions


def test_help_answers_at_once_and_names_the_commands():
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "codezero", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "run a node until it is stopped" in done.stdout
    assert not any(name in done.stderr for name in ("torch", "transformers", "hydra", "omegaconf"))


@pytest.mark.parametrize(
    "command", ["run", "models", "models pull", "swarm", "swarm up", "swarm invite", "swarm bootnode"]
)
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as exit_:
        main([*command.split(), "--help"])
    assert exit_.value.code == 0
    shown = capsys.readouterr().out
    assert shown
    assert "--stop-with-parent" not in shown


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("codezero 0.")


def test_a_mistake_is_one_line_on_stderr_and_exit_code_1(capsys):
    assert main(["run", "train.learnin_rate=1"]) == 1
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.startswith("error: unknown setting train.learnin_rate: did you mean train.learning_rate")
    assert found.err.count("\n") == 1


def test_show_config_prints_the_result_with_rounds_from_the_flag(capsys):
    assert main(["run", "--rounds", "3", "--show-config", "preset=local"]) == 0
    assert "rounds: 3\n" in capsys.readouterr().out


def test_settings_may_stand_before_and_after_options(capsys):
    assert main(["run", "preset=local", "--rounds", "3", "seed=5", "--show-config", "train.method=lora"]) == 0
    shown = capsys.readouterr().out
    assert all(line in shown for line in ("seed: 5\n", "rounds: 3\n", "method: lora\n"))


@pytest.mark.parametrize("arguments", [["run", "--fast"], ["models", "list", "x"], ["swarm", "invite", "a=b"]])
def test_unknown_arguments_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "unrecognized arguments" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["up", "--help"], ["bootnode", "--help"]])
def test_help_on_swarms_is_instant_too(arguments):
    command = [sys.executable, "-X", "importtime", "-m", "codezero", "swarm", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    assert not any(name in done.stderr for name in ("torch", "hivemind", "hydra", "cryptography", "yaml"))


def test_settings_of_a_swarm_may_stand_before_and_after_options(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr("codezero.swarm.up", lambda options: seen.append(options) or 3)
    folder = ["--folder", str(tmp_path), "--announce", "/ip4/1.2.3.4/tcp/1", "--announce", "/ip4/1.2.3.4/tcp/2"]
    assert main(["swarm", "up", "a=1", "--nodes", "3", "b=2", *folder, "--rounds", "5", "c=3"]) == 3
    assert seen == [
        UpOptions(
            nodes=3,
            rounds=5,
            folder=tmp_path,
            announce=["/ip4/1.2.3.4/tcp/1", "/ip4/1.2.3.4/tcp/2"],
            settings=["a=1", "b=2", "c=3"],
        )
    ]


def test_an_unknown_model_is_refused_with_what_to_do(capsys, tmp_path):
    assert main(["models", "verify", "Qwen2.5-Coder-0.5B-Instruct", "--cache-dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_models_list_shows_the_catalogue(capsys, tmp_path):
    assert main(["models", "list", "--cache-dir", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "Qwen2.5-Coder-0.5B-Instruct" in out
    assert "494 M parameters" in out
    assert "absent" in out
