import subprocess
import sys

import pytest

from codezero.cli import main


def test_help_answers_at_once_and_names_the_commands():
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "codezero", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "run a node until it is stopped" in done.stdout
    assert not any(name in done.stderr for name in ("torch", "transformers", "hydra", "omegaconf"))


@pytest.mark.parametrize(
    "arguments", [["run", "--help"], ["models", "--help"], ["models", "pull", "--help"], ["--version"]]
)
def test_every_command_explains_itself(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 0
    assert capsys.readouterr().out


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


@pytest.mark.parametrize("arguments", [["run", "--fast"], ["models", "list", "x"]])
def test_unknown_arguments_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "unrecognized arguments" in capsys.readouterr().err


def test_an_unknown_model_is_refused_with_what_to_do(capsys, tmp_path):
    assert main(["models", "verify", "Qwen2.5-Coder-0.5B-Instruct", "--cache-dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_models_list_shows_the_catalogue(capsys, tmp_path):
    assert main(["models", "list", "--cache-dir", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "Qwen2.5-Coder-0.5B-Instruct" in out
    assert "494 M parameters" in out
    assert "absent" in out
