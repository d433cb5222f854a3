"""The support archive: what is in it, and that no secret is, wherever one was planted."""

import gzip
import io
import json
import os
import platform
import stat
import tarfile
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives import serialization

from codezero.doctor import allowed, bundle
from codezero.doctor.files import Unusable, text_of
from codezero.doctor.finding import info
from codezero.errors import StateError
from codezero.identity.key import Identity, save
from codezero.ledger import keystore
from codezero.rollouts import rollout_file
from codezero.rollouts.rollout_file import RolloutFile
from codezero.runtime import state
from tests.unit.doctor.cases import case_of
from tests.unit.doctor.test_redact import HEX, spellings

PASSPHRASE, HUB_TOKEN, RPC_KEY = "correct horse battery", "hf_ThisIsTheTokenOfTheHub", "AbCdEf0123456789AbCdEf01"
ORG, EMAIL, WANDB = "7f1d2c9a-1111-4000-8000-000000000001", "alice.liddell@mail.example", "c0ffee" * 6 + "c0ff"
SERVER_KEY, NETRC, APP_KEY = "server-key-0815-long", "n3trc-password", "alchemy_app_key_4711"
HUB_PASSWORD = "mirror-password-4712"


def opened(path):
    """Everything in the archive, by name, with the archive's own names and bytes before them."""
    raw = path.read_bytes()
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive.getmembers()}
    return gzip.decompress(raw), files


def made(case, path, findings=()):
    lines = bundle.write(path, case, findings or [info("a", "b")])
    return lines, *opened(path)


@pytest.fixture
def rich(tmp_path, monkeypatch):
    """A node of somebody who has every kind of secret, and logs in which all of them stand, in all spellings."""
    home = tmp_path / "home" / "aliceliddell"
    home.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    identity = Identity.generate()
    save(identity, tmp_path / "swarm.pem")
    pem = identity.private_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode()
    keystore.save(bytes.fromhex(HEX), tmp_path / "wallet.json", PASSPHRASE, scrypt_n=2)
    (tmp_path / "passphrase").write_text(PASSPHRASE + "\n")
    (tmp_path / "push-token").write_text("the-token-in-a-file\n")
    login = tmp_path / "login"
    login.mkdir()
    session = {"publicKey": "0x04", "privateKey": "0x" + "5e" * 32, "activated": True, "initCode": "0x" + "77" * 40}
    (login / "userApiKey.json").write_text(json.dumps({ORG: [session]}))
    (login / "userData.json").write_text(
        json.dumps({ORG: {"orgId": ORG, "email": EMAIL, "userId": "user-id-99887766"}})
    )
    (tmp_path / "sign-in.env").write_text(f"ALCHEMY_API_KEY={APP_KEY}\n")
    (home / ".netrc").write_text(f"machine x.example login alice password {NETRC}\n")
    (home / ".cache" / "huggingface").mkdir(parents=True)
    (home / ".cache" / "huggingface" / "token").write_text("plain-token-of-the-hub")
    secrets = [PASSPHRASE, HUB_TOKEN, RPC_KEY, ORG, EMAIL, WANDB, SERVER_KEY, NETRC, APP_KEY, "5e" * 32, HUB_PASSWORD]
    for name in ("rollout-server.yaml", "pc.yaml"):
        rollout_file.write(tmp_path / name, RolloutFile(url="http://127.0.0.1:7070", token=f"rollouts-of-{name}"))
    secrets += [
        "plain-token-of-the-hub",
        "the-token-in-a-file",
        *("rollouts-of-rollout-server.yaml", "rollouts-of-pc.yaml"),
        "user-id-99887766",
        json.loads((tmp_path / "wallet.json").read_text())["id"],
    ]
    secrets.append(json.loads((tmp_path / "wallet.json").read_text())["crypto"]["ciphertext"])
    case = case_of(
        tmp_path,
        *("swarm=native", "ledger=wallet", f"ledger.rpc_url=https://rpc.example/v2/{RPC_KEY}"),
        *(f"ledger.contract_address=0x{'11' * 20}", f"ledger.passphrase_file={tmp_path / 'passphrase'}"),
        *(f"push.token_file={tmp_path / 'push-token'}", "rollout.engine=remote", "rollout.servers=[pc.yaml]"),
        f"push.endpoint=https://alice:{HUB_PASSWORD}@hub.example",
        *(f"ledger.org_id={ORG}", "evaluator=openai", "evaluator.model=m", "evaluator.api_key_env=MY_JUDGE"),
        **{"HOME": str(home), "USER": "aliceliddell", "HUGGINGFACE_ACCESS_TOKEN": HUB_TOKEN, "WANDB_API_KEY": WANDB},
        **{"OPENAI_API_KEY": SERVER_KEY, "CODEZERO_WALLET_PASSPHRASE": PASSPHRASE},
    )
    (tmp_path / "logs").mkdir()
    (tmp_path / "state").mkdir()
    lines = [f"2026-11-21 23:00:00,000 INFO codezero.x: round {n} of {home}/state" for n in range(50)]
    for secret in secrets:
        lines += [f"2026-11-21 23:00:01,000 ERROR codezero.y: seen {spelling} there" for spelling in spellings(secret)]
    lines += [f"2026-11-21 23:00:02,000 DEBUG codezero.z: {line}" for line in pem.splitlines()]
    lines.append(f"2026-11-21 23:00:02,000 DEBUG codezero.z: signing with the key 0x{HEX}")  # which the wallet hides
    lines += [identity.to_file_bytes().hex(), repr(identity.to_file_bytes())]
    text = "\n".join([*lines, "2026-11-21 23:00:03,000 INFO codezero.x: the end"]) + "\n"
    for name in ("swarm.log", "swarm.log.1", "yarn.log", "swarm_launcher.log", "proposer.log"):
        (tmp_path / "logs" / name).write_text(text)
    (tmp_path / "logs" / "rounds.jsonl").write_text(json.dumps({"round": 1, "network": secrets}) + "\n")
    state.bind_settings(tmp_path / "state", {"model.name": f"{home}/model", "note": PASSPHRASE})
    (tmp_path / "output.log").write_text(text)
    return case, [*secrets, *(line for line in pem.splitlines()[1:-1]), str(home), "aliceliddell"], identity


def test_no_secret_is_anywhere_in_the_archive(rich, tmp_path):
    case, secrets, identity = rich
    findings = [info("x", f"seen {secret}", f"in {secret}", f"use {secret}") for secret in secrets]
    _, raw, files = made(case, tmp_path / "support.tar.gz", findings)
    everything = b"".join([raw, *files.values()]).lower()
    for secret in secrets:
        for spelling in spellings(secret):
            assert spelling.strip('="')[1:-1].lower().encode() not in everything, spelling
    assert identity.to_file_bytes()[20:60] not in everything
    assert PASSPHRASE.encode() not in everything
    assert HEX.encode() not in everything


def test_what_helps_is_in_it(rich, tmp_path):
    case, _, identity = rich
    _, _, files = made(case, tmp_path / "support.tar.gz")
    names = {name.removeprefix("codezero-support/") for name in files}
    assert names >= {"doctor.json", "versions.json", "config.yaml", "state/settings.json", "logs/rounds.jsonl"}
    assert names >= {"logs/swarm.log", "logs/swarm.log.1", "logs/yarn.log", "logs/swarm_launcher.log", "output.log"}
    assert "logs/proposer.log" in names
    log = files["codezero-support/logs/swarm.log"].decode()
    assert "INFO codezero.x: round 49 of ~/state\n" in log
    assert log.endswith("INFO codezero.x: the end\n")
    config = files["codezero-support/config.yaml"].decode()
    assert "num_generations: 8" in config
    assert "rpc_url: https://rpc.example/[set]\n" in config
    assert "passphrase_file: '[set]'\n" in config
    assert json.loads(files["codezero-support/versions.json"])["python"] == platform.python_version()
    assert json.loads(files["codezero-support/doctor.json"])["exit_code"] == 0
    assert identity.peer_id not in names


def test_only_fields_of_the_lists_come_in(tmp_path):
    case, _ = hostile(tmp_path)
    case = replace(case, config=case_of(tmp_path, "tracking.wandb_entity=hunter", "swarm.name=ours").config)
    planted = {"round": 3, "network": "alone", "diary": "hunter", "0xhunter": {"hunter": 1}}
    (case.log_dir / "rounds.jsonl").write_text(f"{json.dumps(planted)}\nhunter\n[1]\n{'[' * 99_999}\n")
    (case.state_dir / "status.json").write_text(json.dumps({"role": "solver", "diary": "hunter"}))
    (case.state_dir / "settings.json").write_text(
        json.dumps({"model.name": "tiny", "train.lora_r": 8, "ledger.org_id": "hunter", "diary": "hunter"})
    )
    (case.state_dir / "proposer").mkdir()
    (case.state_dir / "proposer" / "status.json").write_text('"hunter"')
    (case.state_dir / "verifier").mkdir()
    (case.state_dir / "verifier" / "status.json").write_text(json.dumps({"role": "verifier", "diary": "hunter"}))
    (case.log_dir / "cases.jsonl").write_text(json.dumps({"batch": 1, "diary": "hunter"}))
    (case.log_dir / "probe.jsonl").write_text(json.dumps({"round": 4, "diary": "hunter"}))
    contents = bundle.collect(case, [])
    assert not any(b"hunter" in content for content in contents.files.values())
    assert contents.files["logs/rounds.jsonl"] == b'{"round": 3, "network": "alone"}\n{}\n{}\n{}\n'
    assert contents.files["logs/cases.jsonl"] == b'{"batch": 1}\n'
    assert contents.files["logs/probe.jsonl"] == b'{"round": 4}\n'
    assert contents.files["state/verifier/status.json"] == b'{"role": "verifier"}'
    assert contents.files["state/status.json"] == b'{"role": "solver"}'
    settings = json.loads(contents.files["state/settings.json"])
    assert settings == {"model.name": "tiny", "train.lora_r": 8, "ledger.org_id": "[set]"}
    assert contents.left_out["state/proposer/status.json"] == "it is not a JSON object"
    config = contents.files["config.yaml"].decode()
    assert "name: ours\n" in config
    assert "wandb_entity: '[set]'\n" in config


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("https://hunter@rpc.example", "https://rpc.example"),
        ("https://rpc.example/hunter", "https://rpc.example/[set]"),
        ("https://rpc.example?hunter", "https://rpc.example/[set]"),
        ("https://rpc.example:hunter/", "[set]"),
        ("hunter", "[set]"),
        ("", ""),
    ],
)
def test_of_an_address_the_server_comes_in(url, shown):
    assert allowed.value("ledger.rpc_url", url) == shown


def test_keys_are_not_on_the_list_whatever_they_are_called(rich, tmp_path):
    """Not by cleaning them, but since no such file is ever opened for the archive."""
    case, _, _ = rich
    for folder in (case.log_dir, case.state_dir):
        for name in ("id_rsa", "swarm.pem", "wallet.json", "userApiKey.json", "userData.json", ".env"):
            (folder / name).write_text("nothing secret at all")
    _, raw, _ = made(case, tmp_path / "support.tar.gz")
    assert b"nothing secret at all" not in raw


def test_the_archive_is_its_owners_and_never_replaces_a_file(tmp_path):
    case, path = case_of(tmp_path), tmp_path / "support.tar.gz"
    old = os.umask(0)
    try:
        lines, _, _ = made(case, path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert lines[0].startswith(f"{path} (")
    assert any(line.startswith("  doctor.json (") for line in lines)
    assert "read it" in lines[-1]
    before = path.read_bytes()
    with pytest.raises(StateError, match="already exists: give another name"):
        bundle.write(path, case, [])
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["support.tar.gz"]  # and no temporary one


@pytest.mark.parametrize("name", ["support", "support.tar", "support.zip", "swarm.pem"])
def test_a_name_that_is_no_archives(tmp_path, name):
    with pytest.raises(StateError, match=r"end it in \.tar\.gz"):
        bundle.write(tmp_path / name, case_of(tmp_path), [])


def test_a_folder_that_is_not_there_is_an_error_in_words(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="cannot write"):
        bundle.write(tmp_path / "file" / "support.tar.gz", case_of(tmp_path), [])


def hostile(tmp_path):
    case = case_of(tmp_path)
    case.log_dir.mkdir()
    case.state_dir.mkdir()
    return case, case.log_dir / "swarm.log"


def left_out(case):
    return bundle.collect(case, []).left_out


def test_the_logs_of_each_role_are_in_it_with_the_earlier_ones(tmp_path):
    case, _ = hostile(tmp_path)
    names = [f"{log}.log{end}" for log in ("swarm", "proposer", "verifier") for end in ("", ".1", ".2", ".3")]
    for name in names:
        (case.log_dir / name).write_text("a line\n")
    assert {f"logs/{name}" for name in names} <= bundle.collect(case, []).files.keys()


def test_a_link_is_not_followed(tmp_path):
    case, log = hostile(tmp_path)
    (tmp_path / "id_rsa").write_text("the private key of somebody")
    log.symlink_to(tmp_path / "id_rsa")
    os.link(tmp_path / "id_rsa", case.log_dir / "yarn.log")
    (case.state_dir / "settings.json").symlink_to(tmp_path / "id_rsa")
    lines, raw, _ = made(case, tmp_path / "support.tar.gz")
    assert b"the private key of somebody" not in raw
    assert "  not logs/swarm.log: it is a link" in lines
    assert "  not logs/yarn.log: it has several names (hard links)" in lines
    assert "  not state/settings.json: it is a link" in lines


def test_a_huge_sparse_log_costs_nothing(tmp_path):
    case, log = hostile(tmp_path)
    with log.open("wb") as file:
        file.truncate(1 << 30)
    assert left_out(case) == {"logs/swarm.log": "its end has zeros only, or no beginning of a line"}
    with log.open("ab") as file:
        file.write(b"x\n" * 600_000)
    found = bundle.collect(case, []).files["logs/swarm.log"]
    assert len(found) <= bundle.LOG_BYTES
    assert found.startswith(b"x\n")


def test_only_the_end_of_a_log_from_a_whole_line_on(tmp_path):
    case, log = hostile(tmp_path)
    log.write_text("".join(f"line {number}\n" for number in range(200_000)))
    found = bundle.collect(case, []).files["logs/swarm.log"].decode()
    assert found.endswith("line 199999\n")
    assert found.splitlines()[0] in {f"line {number}" for number in range(200_000)}


def test_files_that_are_none_or_not_what_they_should_be(tmp_path):
    case, log = hostile(tmp_path)
    os.mkfifo(log)
    (case.log_dir / "yarn.log").mkdir()
    (case.state_dir / "settings.json").write_text("x" * 200_000)
    (case.state_dir / "status.json").write_bytes(b"\x00\x01")
    (case.state_dir / "outbox.sqlite").write_text("no database")
    found = left_out(case)
    assert found["logs/swarm.log"] == "it is not a plain file"
    assert found["logs/yarn.log"] == "it is not a plain file"
    assert found["state/status.json"].startswith("Expecting value")
    assert found["state/settings.json"].startswith("it has 200000 bytes")
    assert found["outbox.json"].startswith("cannot read the outbox")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    _, log = hostile(tmp_path)
    log.write_text("x")

    def refuses(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("codezero.doctor.files.os.open", refuses)  # root, whom tests may run as, may read everything
    with pytest.raises(Unusable, match="it cannot be read: Permission denied"):
        text_of(log, 100)


def test_a_file_of_which_a_secret_cannot_be_taken_is_left_out(tmp_path, monkeypatch):
    case, log = hostile(tmp_path)
    log.write_text("it was hunter2hunter2\n")
    monkeypatch.setattr(bundle.secrets, "values", lambda _: {b"hunter2hunter2"})
    monkeypatch.setattr(bundle.Redactor, "__call__", lambda _, text: text)
    contents = bundle.collect(case, [])
    assert contents.left_out == {"logs/swarm.log": "a secret could not be removed from it"}


def test_bytes_that_are_no_text_do_not_hide_a_secret(tmp_path):
    case, log = hostile(tmp_path)
    log.write_bytes(b"\xff\xfe password=hunter2 \xc3 hf_abcdefghijkl\n")
    found = bundle.collect(case, []).files["logs/swarm.log"]
    assert b"hunter2" not in found
    assert b"hf_abc" not in found


def test_what_waits_for_the_chain_is_summed_up(tmp_path):
    from codezero.ledger.items import LedgerScope
    from codezero.ledger.outbox import Outbox
    from codezero.types import RoundId

    case, _ = hostile(tmp_path)
    outbox = Outbox(
        case.state_dir / "outbox.sqlite", LedgerScope(chain_id=5, contract="0x" + "11" * 20, peer_id="QmMe")
    )
    outbox.credit(RoundId(number=3), 1.5, ["QmMe"])
    outbox.fold()
    outbox.close()
    found = json.loads(bundle.collect(case, []).files["outbox.json"])
    assert found["items"][0]["reward"] == 1
    assert found["owed"][0]["points"] == 0.5


def test_a_name_that_logs_are_full_of_is_left_in_them(tmp_path):
    from codezero.doctor.secrets import private_names

    names = private_names(case_of(tmp_path, HOME="/home/codezero", USER="codezero", LOGNAME="alice"))
    assert (names["/home/codezero"], names["alice"]) == ("~", "USER")
    assert "codezero" not in names
    assert "" not in private_names(case_of(tmp_path, HOME="/", USER=""))
