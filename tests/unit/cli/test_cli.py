import errno
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from codezero.cli import main
from codezero.config import checkout
from codezero.errors import OUTAGE, CheckpointError, LedgerError, StateError, told_as
from codezero.identity.key import load, load_or_create
from codezero.identity.names import animal_name
from codezero.launch.swarm_settings import UpOptions
from codezero.ledger.faults import NoContract, RpcUnreachable

HEAVY = (
    *("torch", "transformers", "numpy", "tqdm", "hydra", "omegaconf", "yaml", "msgspec", "httpx2", "hivemind"),
    *("cryptography", "codezero.harness", "codezero.sandbox"),
)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("", "run a node until it is stopped"),
        ("eval", "--score"),
        ("swarm up", "--with-verifier"),
        ("swarm bootnode", "--listen"),
        ("doctor", "exit code: 0 nothing is wrong, 1 warnings"),
    ],
)
def test_help_answers_at_once(command, says):
    command = [sys.executable, "-X", "importtime", "-m", "codezero", *command.split(), "--help"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    assert says in done.stdout
    assert [name for name in HEAVY if name in done.stderr] == []


@pytest.mark.parametrize(
    "command",
    [
        *("run", "start", "eval", "models", "models pull", "identity", "identity import"),
        *("swarm", "swarm up", "swarm invite", "swarm bootnode"),
    ],
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


def test_output_that_nobody_reads_any_more_ends_a_command_without_a_word(tmp_path):
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as pipe:
        command = [sys.executable, "-m", "codezero", "models", "list", "--cache-dir", str(tmp_path)]
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_a_command_whose_output_is_closed_does_its_work(tmp_path):
    command = f'exec "$0" -m codezero models list --cache-dir {tmp_path} >&-'
    done = subprocess.run(["sh", "-c", command, sys.executable], stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_a_full_disk_does_not_take_is_told_in_one_line(unbuffered, tmp_path):
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "codezero", "models", "list", "--cache-dir", str(tmp_path)]
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment)
    assert (done.returncode, done.stderr) == (1, "error: No space left on device: free space\n")


def test_a_mistake_is_one_line_on_stderr_and_exit_code_1(capsys):
    assert main(["run", "train.learnin_rate=1"]) == 1
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.startswith("error: unknown setting train.learnin_rate: did you mean train.learning_rate")
    assert found.err.count("\n") == 1


def test_what_nobody_foresaw_has_its_traceback_and_an_exit_code_of_its_own(capsys, monkeypatch):
    def fails(_):
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr("codezero.config.load.load_config", fails)
    assert main(["run"]) == 70
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback")
    assert shown.endswith("RuntimeError: CUDA out of memory\n")


@pytest.mark.parametrize(("error", "code"), [(RpcUnreachable("no RPC"), 75), (NoContract("no contract"), 1)])
def test_a_node_that_an_outage_ends_has_an_exit_code_of_its_own(capsys, monkeypatch, error, code):
    def fails(_):
        raise error

    monkeypatch.setattr("codezero.node.run_node", fails)
    assert main(["run", "preset=local"]) == code
    assert capsys.readouterr().err == f"error: {error}\n"


@pytest.mark.parametrize(("command", "code"), [("run", 0), ("doctor", 130)])
def test_what_the_user_stops_is_done_only_if_it_runs_until_it_is_stopped(command, code, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("codezero.config.load.load_config", interrupted)
    assert main([command]) == code


def test_show_config_prints_the_result_with_rounds_from_the_flag(capsys):
    assert main(["run", "--rounds", "3", "--show-config", "preset=local"]) == 0
    assert "rounds: 3\n" in capsys.readouterr().out


def test_settings_may_stand_before_and_after_options(capsys):
    assert main(["run", "preset=local", "--rounds", "3", "seed=5", "--show-config", "train.method=lora"]) == 0
    shown = capsys.readouterr().out
    assert all(line in shown for line in ("seed: 5\n", "rounds: 3\n", "method: lora\n"))


@pytest.mark.parametrize("command", ["verify", "propose"])
def test_what_does_batches_refuses_a_number_of_rounds(command, capsys):
    assert main([command, "preset=local", "rounds=5"]) == 1
    assert capsys.readouterr().err == (
        "error: rounds=5 is not possible here: this command does batches, so use --batches N\n"
    )


@pytest.mark.parametrize("arguments", [["run", "--fast"], ["models", "list", "x"], ["swarm", "invite", "a=b"]])
def test_unknown_arguments_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "unrecognized arguments" in capsys.readouterr().err


def test_settings_of_a_swarm_may_stand_before_and_after_options(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr("codezero.launch.up.up", lambda options: seen.append(options) or 3)
    folder = ["--folder", str(tmp_path), "--announce", "/ip4/1.2.3.4/tcp/1", "--announce", "/ip4/1.2.3.4/tcp/2"]
    assert main(["swarm", "up", "a=1", "--nodes", "3", "b=2", *folder, "--rounds", "5", "--with-verifier", "c=3"]) == 3
    assert seen == [
        UpOptions(
            nodes=3,
            with_verifier=True,
            rounds=5,
            folder=tmp_path,
            announce=["/ip4/1.2.3.4/tcp/1", "/ip4/1.2.3.4/tcp/2"],
            settings=["a=1", "b=2", "c=3"],
        )
    ]


@pytest.mark.parametrize("command", [["swarm", "up"], ["start", "--yes"]])
@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("--nodes=0", "'0' is not a whole number from 1 on"),
        ("--proposers=-1", "'-1' is not a whole number from 0 on"),
        ("--rounds=-1", "'-1' is not a whole number from 0 on"),
        ("--port=0", "'0' is not a port: use 1 to 65535"),
    ],
)
def test_options_of_a_swarm_that_are_not_possible(capsys, tmp_path, command, option, why):
    with pytest.raises(SystemExit) as end:
        main([*command, option, "--folder", str(tmp_path)])
    assert end.value.code == 2
    assert f"error: argument {option.partition('=')[0]}: {why}\n" in capsys.readouterr().err


def test_an_unknown_model_is_refused_with_what_to_do(capsys, tmp_path):
    assert main(["models", "verify", "Qwen2.5-Coder-0.5B-Instruct", "--cache-dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_models_list_shows_the_catalogue(capsys, tmp_path):
    assert main(["models", "list", "--cache-dir", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "Qwen2.5-Coder-0.5B-Instruct" in out
    assert "494 M parameters" in out
    assert "absent" in out


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty current folder; no terminal; no settings of the identity in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "isatty", lambda _: False)
    monkeypatch.delenv("IDENTITY_PATH", raising=False)
    monkeypatch.delenv("CODEZERO_PASSPHRASE", raising=False)
    return tmp_path


@pytest.fixture
def peer(folder):
    """A key in swarm.pem of the current folder."""
    identity, _ = load_or_create(folder / "swarm.pem")
    return identity


def error_of(arguments, capsys):
    assert main(arguments) == 1
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.startswith("error: ")
    assert found.err.count("\n") == 1
    return found.err.removeprefix("error: ").rstrip("\n")


def test_identity_show_tells_who_the_node_is(peer, folder, capsys):
    assert main(["identity", "show"]) == 0
    found = capsys.readouterr()
    assert found.out.split("\n") == [
        f"peer id  {peer.peer_id}",
        f"name     {animal_name(peer.peer_id)}",
        f"file     {folder}/swarm.pem",
        "",
    ]
    assert found.err == ""


def test_identity_show_warns_of_a_key_that_others_can_read(peer, folder, capsys):
    (folder / "swarm.pem").chmod(0o644)
    assert main(["identity", "show", "--path", "swarm.pem"]) == 0
    assert "warning: swarm.pem is open to other users of this machine (mode 0644)" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["show"], ["export", "backup.pem"]])
def test_identity_of_a_node_without_a_key_is_an_error_and_makes_none(folder, arguments, capsys, monkeypatch):
    monkeypatch.setenv("IDENTITY_PATH", "mine.pem")
    error = error_of(["identity", *arguments], capsys)
    made_by = f"a first run in a swarm or `{checkout.COMMAND} identity import BACKUP --path mine.pem`"
    assert error == f"there is no key mine.pem: {made_by} makes one"
    assert list(folder.iterdir()) == []


def test_a_key_moves_by_export_and_import(peer, folder, capsys, monkeypatch):
    monkeypatch.setenv("CODEZERO_PASSPHRASE", "12345678")
    assert main(["identity", "export", "backup.pem"]) == 0
    assert (folder / "backup.pem").stat().st_mode & 0o777 == 0o600
    assert main(["identity", "import", "backup.pem", "--path", "new/swarm.pem"]) == 0
    assert f"new/swarm.pem is the key of peer {peer.peer_id} ({animal_name(peer.peer_id)})" in capsys.readouterr().out
    assert (folder / "new" / "swarm.pem").read_bytes() == (folder / "swarm.pem").read_bytes()
    assert (folder / "new" / "swarm.pem").stat().st_mode & 0o777 == 0o600


def test_export_never_replaces_a_file_and_import_never_a_key(peer, folder, capsys, monkeypatch):
    monkeypatch.setenv("CODEZERO_PASSPHRASE", "12345678")
    (folder / "backup.pem").write_text("precious")
    assert "backup.pem already exists: give another name" in error_of(["identity", "export", "backup.pem"], capsys)
    assert "swarm.pem already exists: move it away" in error_of(["identity", "import", "backup.pem"], capsys)
    assert (folder / "backup.pem").read_text() == "precious"
    assert load(folder / "swarm.pem").peer_id == peer.peer_id


@pytest.mark.parametrize("action", ["export", "import"])
def test_a_dash_is_no_backup(peer, folder, capsys, monkeypatch, action):
    monkeypatch.setenv("CODEZERO_PASSPHRASE", "12345678")
    with pytest.raises(SystemExit):
        main(["identity", action, "-"])
    assert "argument FILE: - is no file: give the name of one, or ./- if it is called that" in capsys.readouterr().err
    assert [entry.name for entry in folder.iterdir()] == ["swarm.pem"]


@pytest.mark.parametrize(("name", "fault"), [("gone", "No such file"), (".", "Is a directory"), ("text", "not open")])
def test_what_is_no_backup_is_not_imported(folder, name, fault, capsys, monkeypatch):
    monkeypatch.setenv("CODEZERO_PASSPHRASE", "12345678")
    (folder / "text").write_text("no backup")
    assert fault in error_of(["identity", "import", name], capsys)
    assert not (folder / "swarm.pem").exists()


def test_without_a_terminal_the_passphrase_comes_from_the_environment_only(peer, folder, capsys, monkeypatch):
    assert "give it in CODEZERO_PASSPHRASE" in error_of(["identity", "export", "backup.pem"], capsys)
    monkeypatch.setenv("CODEZERO_PASSPHRASE", "1234567")
    assert "of 7 characters is too weak" in error_of(["identity", "export", "backup.pem"], capsys)
    assert [entry.name for entry in folder.iterdir()] == ["swarm.pem"]


def test_on_a_terminal_a_new_passphrase_is_asked_for_twice_and_a_known_one_once(peer, folder, capsys, monkeypatch):
    typed = iter(["12345678", "12345679", "12345678", "12345678", "12345678"])
    monkeypatch.setattr(os, "isatty", lambda descriptor: descriptor == 0)
    monkeypatch.setattr("getpass.getpass", lambda _: next(typed))
    assert error_of(["identity", "export", "backup.pem"], capsys) == "the two passphrases differ: start again"
    assert main(["identity", "export", "backup.pem"]) == 0
    assert main(["identity", "import", "backup.pem", "--path", "new.pem"]) == 0
    assert list(typed) == []


@pytest.mark.parametrize("end", [EOFError, KeyboardInterrupt])
def test_an_end_of_input_instead_of_a_passphrase_is_an_error(peer, folder, capsys, monkeypatch, end):
    def closed(_):
        raise end

    monkeypatch.setattr(os, "isatty", lambda descriptor: descriptor == 0)
    monkeypatch.setattr("getpass.getpass", closed)
    assert error_of(["identity", "export", "backup.pem"], capsys) == "no passphrase was typed: start again"


def full_file(tmp_path):
    with told_as(StateError, "cannot write to state folder x"), open("/dev/full", "w") as full:
        full.write("x")


def full_database(tmp_path):
    with closing(sqlite3.connect(tmp_path / "full.sqlite")) as db:
        db.execute("PRAGMA max_page_count = 2")
        try:
            db.executescript("CREATE TABLE a (b); INSERT INTO a VALUES (zeroblob(100000));")
        except sqlite3.Error as error:
            raise LedgerError(f"cannot use the outbox x: {error}") from error


def torn_while_full(tmp_path):
    """As torch's writer of checkpoints, which fails once more while it closes what it could not write."""
    last = RuntimeError("unexpected pos")
    last.__context__ = OSError(errno.ENOSPC, "No space left on device")
    raise CheckpointError("cannot save round 1") from last


def mistaken(tmp_path):
    with told_as(StateError, "cannot read x"):
        (tmp_path / "x").read_text()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize(
    ("fails", "code"), [(full_file, OUTAGE), (full_database, OUTAGE), (torn_while_full, OUTAGE), (mistaken, 1)]
)
def test_a_program_that_a_full_disk_ends_is_worth_another_start(fails, code, tmp_path, monkeypatch):
    monkeypatch.setattr("codezero.node.run_node", lambda config: fails(tmp_path))
    assert main(["run", f"state_dir={tmp_path / 'state'}", f"tracking.log_dir={tmp_path / 'logs'}"]) == code


@pytest.mark.parametrize("text", ["65536", "-1", "eighty", "", "1e3"])
def test_what_is_no_port_is_refused_where_it_is_given(capsys, text):
    with pytest.raises(SystemExit) as end:
        main(["dashboard", f"--port={text}"])
    assert end.value.code == 2
    assert f"argument --port: {text!r} is not a port: use 0 to 65535" in capsys.readouterr().err


def test_a_swarm_of_ones_own_and_training_alone_exclude_each_other(capsys):
    assert main(["start", "--own", "--local", "--yes", "--show-config"]) == 1
    assert "exclude each other" in capsys.readouterr().err


def test_the_port_of_the_sign_in_app_is_not_left_to_chance(capsys):
    with pytest.raises(SystemExit):
        main(["start", "--port-sign-in", "0"])
    assert "argument --port-sign-in: '0' is not a port: use 1 to 65535" in capsys.readouterr().err


def test_a_path_of_the_command_line_may_begin_with_a_tilde_and_is_not_empty(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CODEZERO_WALLET_PASSPHRASE", "a long enough passphrase")
    assert main(["wallet", "create", "--keystore=~/w.json"]) == 0
    assert (tmp_path / "w.json").exists()
    with pytest.raises(SystemExit):
        main(["report", "--out", ""])
    assert "the path is empty" in capsys.readouterr().err
