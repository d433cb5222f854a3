"""The command: what it prints, how it ends, and that nothing can keep it."""

import errno
import json
import os
import subprocess
import sys
import tarfile
from contextlib import ExitStack

import pytest

from codezero.cli import main
from codezero.config.load import load_config, settings_of
from codezero.doctor import bundle
from codezero.doctor import examine as examining
from codezero.doctor.finding import as_json, error, info, lines, ok, warning
from codezero.observe.status import StatusFile, new_status
from codezero.runtime.state import note_start, noted_start
from codezero.views import runs
from tests.unit.doctor.test_servers import listening


def examined(monkeypatch, *findings):
    seen = []

    def examine(case):
        seen.append(case)
        return list(findings)

    monkeypatch.setattr(examining, "examine", examine)
    return seen


def test_a_folder_that_may_not_be_read_is_one_line(tmp_path, monkeypatch, capsys):
    def closed(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    examined(monkeypatch, ok("python", "3.11"))
    monkeypatch.setattr(bundle, "_pending", closed)
    assert main(["doctor", f"state_dir={tmp_path}"]) == 0
    assert "3.11" in capsys.readouterr().out
    monkeypatch.setattr(runs, "roles_in", closed)
    assert main(["doctor", "--state-dir", str(tmp_path)]) == 1
    says = f"error: cannot read {tmp_path}: Permission denied; ask as the user who runs the node\n"
    assert capsys.readouterr().err == says


def test_a_state_folder_tells_what_its_node_was_started_with(tmp_path, monkeypatch):
    seen, folder = examined(monkeypatch), tmp_path / "state"
    folder.mkdir()
    note_start(folder, settings_of(load_config(["swarm=native", "train.method=lora", "state_dir=elsewhere"])))
    assert (folder / "started_with.json").stat().st_mode & 0o777 == 0o600  # an RPC's address may have a key in it
    assert main(["doctor", "--state-dir", str(folder), "train.method=full"]) == 0
    config = seen[0].config
    assert (config.swarm.network.value, config.train.method.value, seen[0].state_dir) == ("native", "full", folder)


def test_without_settings_the_node_here_is_meant_and_with_some_the_one_they_would_start(tmp_path, monkeypatch):
    seen = examined(monkeypatch)
    (tmp_path / "state").mkdir()
    note_start(tmp_path / "state", ["train.method=full"])
    monkeypatch.chdir(tmp_path)
    assert main(["doctor"]) == 0
    assert main(["doctor", "rounds=3"]) == 0
    assert [case.config.train.method.value for case in seen] == ["full", "lora"]


@pytest.mark.parametrize("content", ["", "{}", "[1, 2]", "[" * 100_000])
def test_a_note_that_is_none_is_as_if_there_were_none(tmp_path, content):
    (tmp_path / "started_with.json").write_text(content)
    assert noted_start(tmp_path) == []


@pytest.mark.parametrize(
    ("findings", "code", "last"),
    [
        ([ok("a", "b"), info("c", "d")], 0, "nothing is wrong"),
        ([ok("a", "b"), warning("c", "d", "e", "f")], 1, "1 warning (c)"),
        (
            [error("a", "b", "c", "d"), error("a", "b", "c", "d"), warning("c", "d", "e", "f")],
            2,
            "2 errors (a) and 1 warning (c)",
        ),
    ],
)
def test_the_exit_code_and_the_last_line(monkeypatch, capsys, findings, code, last):
    examined(monkeypatch, *findings)
    assert main(["doctor"]) == code
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_a_finding_is_what_where_from_and_what_to_do():
    assert lines([warning("clock", "90 s behind", "it is alone", "set it")]) == [
        "warn   clock  90 s behind",
        "              it is alone",
        "              do: set it",
        "1 warning (clock)",
    ]


def test_colours_are_for_terminals_and_hostile_text_moves_no_cursor():
    hostile = error("log\x1b[2J", "last failure: \x1b[31mred\r\nok  all is well\u202e", "means\x07", "do\x1b]0;x\x07")
    for coloured in (False, True):
        shown = "\n".join(lines([hostile], coloured))
        assert shown.count("\n") == 3  # its two notes and the last line: it has made none itself
        own = shown.replace("\x1b[1;31m", "").replace("\x1b[0m", "") if coloured else shown
        assert not any(char in own for char in "\x1b\r\x07\u202e")
        assert ("\x1b[1;31mERROR\x1b[0m" in shown) is coloured


def test_json_has_all_of_it(monkeypatch, capsys):
    examined(monkeypatch, warning("a", "b\x1b[2J", "c", "d"))
    assert main(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["exit_code"] == 1
    assert found["findings"] == [{"name": "a", "severity": "warning", "found": "b\x1b[2J", "means": "c", "do": "d"}]
    assert "\x1b" not in as_json([warning("a", "b\x1b[2J", "c", "d")])


def test_settings_that_are_refused_are_one_finding_and_all_else_is_looked_at(monkeypatch, capsys):
    seen = examined(monkeypatch, ok("a", "b"))
    assert main(["doctor", "train.learnin_rate=1"]) == 2
    shown = capsys.readouterr().out
    assert "ERROR  settings  unknown setting train.learnin_rate: did you mean train.learning_rate" in shown
    assert "ok     a         b" in shown
    assert seen[0].settings == []


def test_a_state_folder_brings_its_logs_and_key_with_it(monkeypatch, tmp_path):
    seen = examined(monkeypatch)
    home = tmp_path / "node 1"
    (home / "logs").mkdir(parents=True)
    (home / "state").mkdir()
    (home / "swarm.pem").write_text("")
    assert main(["doctor", "preset=local", "--state-dir", str(home / "state")]) == 0
    assert (seen[0].state_dir, seen[0].log_dir) == (home / "state", home / "logs")
    assert seen[0].config.swarm.identity_path == str(home / "swarm.pem")
    assert main(["doctor", "--state-dir", str(home / "state"), f"tracking.log_dir={tmp_path}"]) == 0
    assert seen[1].log_dir == tmp_path
    with StatusFile(home / "state", new_status("solver", home / "state", tmp_path / "elsewhere")):
        pass
    (tmp_path / "elsewhere").mkdir()
    assert main(["doctor", "--state-dir", str(home / "state")]) == 0
    assert seen[2].log_dir.resolve() == tmp_path / "elsewhere"
    note_start(home / "state", ["state_dir=state", "swarm.identity_path=node2.pem", "tracking.log_dir=moved"])
    assert main(["doctor", "--state-dir", str(home / "state")]) == 0
    assert seen[3].log_dir.resolve() == tmp_path / "elsewhere"
    assert seen[3].config.swarm.identity_path == "node2.pem"


def test_a_folder_of_a_proposer_alone_brings_the_proposers_logs(monkeypatch, tmp_path):
    seen = examined(monkeypatch)
    folder, logs = tmp_path / "state" / "proposer", tmp_path / "elsewhere"
    folder.mkdir(parents=True)
    logs.mkdir()
    with StatusFile(folder, new_status("proposer", folder, logs)):
        pass
    assert main(["doctor", "--state-dir", str(tmp_path / "state")]) == 0
    assert seen[0].log_dir.resolve() == logs


def test_a_bundle_is_told_of_and_one_that_cannot_be_written_is_an_error(monkeypatch, capsys, tmp_path):
    examined(monkeypatch, ok("a", "b"))
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "--bundle", "support.tar.gz"]) == 0
    assert "support.tar.gz (" in capsys.readouterr().out
    with tarfile.open("support.tar.gz") as archive:
        assert "codezero-support/doctor.json" in archive.getnames()
    assert main(["doctor", "--bundle", "support.tar.gz"]) == 2
    assert "support.tar.gz already exists" in capsys.readouterr().out


def test_secrets_are_not_shown_either(monkeypatch, capsys):
    monkeypatch.setenv("MY_TOKEN", "correct-horse-battery")
    examined(monkeypatch, info("log", "seen correct-horse-battery and https://u:hunter2@host/"))
    main(["doctor"])
    shown = capsys.readouterr().out
    assert "correct-horse" not in shown
    assert "hunter2" not in shown


PATIENT = """\
import sys
from dataclasses import replace
from codezero.cli import main
from codezero.doctor import examine
at_once = examine._all_at_once
# On a busy machine a check that has limits of its own would else be overdue before it can tell.
examine._all_at_once = lambda case, checks: at_once(case, [replace(check, limit_s=120.0) for check in checks])
sys.exit(main(sys.argv[1:]))
"""


def run(tmp_path, *arguments, **environment):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    return subprocess.run(
        [sys.executable, "-c", PATIENT, "doctor", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root, "HF_ENDPOINT": "http://127.0.0.1:9", **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.slow
def test_a_new_node_without_any_network_has_nothing_wrong_but_what_is_away(tmp_path):
    done = run(tmp_path, "--json", "preset=local", f"model.cache_dir={tmp_path / 'cache'}", "train.memory_limit_gib=8")
    found = json.loads(done.stdout)["findings"]
    assert not [finding for finding in found if finding["severity"] == "error"], found
    assert {"python", "packages", "torch", "disk of state_dir", "hub", "clock"} <= {
        finding["name"] for finding in found
    }
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []  # it has left nothing


@pytest.mark.slow
def test_it_ends_though_everything_hangs(tmp_path):
    """Every server takes the connection and never says a word, and torch never comes."""
    fake = tmp_path / "fake" / "torch"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text("import time; time.sleep(600)")
    with ExitStack() as stack:
        ports = [stack.enter_context(listening()) for _ in range(5)]
        url = [f"http://127.0.0.1:{port}" for port in ports]
        done = run(
            tmp_path,
            *("--json", "swarm=native", f"swarm.bootnodes=[/ip4/127.0.0.1/tcp/{ports[0]}/p2p/Qm{'a' * 44}]"),
            *("ledger=modal", f"ledger.rpc_url={url[1]}", f"ledger.proxy_url={url[2]}", "judge.enabled=true"),
            *(f"judge.url={url[3]}", "evaluator=ollama", "evaluator.model=m", f"evaluator.url={url[4]}"),
            **{"HF_ENDPOINT": url[3], "PIP_INDEX_URL": url[3], "PYTHONPATH": f"{fake.parent}{os.pathsep}{os.getcwd()}"},
        )
    told = {finding["name"]: finding["found"] for finding in json.loads(done.stdout)["findings"]}
    assert "not imported within" in told["torch"]
    for name in ("hub", "chain", "sign-in app", "judge service", "evaluator"):
        assert "does not answer within 4 s" in told[name], name
    assert "no answer within 4 s" in told["bootnode"]
    assert done.returncode == 2
