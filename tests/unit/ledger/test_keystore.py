import json
import re
import stat

import pytest

from codezero.cli import main
from codezero.config import PASSPHRASE_ENV
from codezero.ledger import keystore
from codezero.ledger.eth_imports import recursion_limit_kept
from codezero.ledger.faults import WalletError

KEY = bytes.fromhex("4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318")
ADDRESS = "0x2c7536E3605D9C16a7a3D7b1898e529396a65c23"  # of this key, in web3.js' documentation
PASSPHRASE = "correct horse"


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(keystore, "SCRYPT_N", 2)
    monkeypatch.setattr(keystore.save, "__kwdefaults__", {"scrypt_n": 2})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wallet.json"


def test_a_key_comes_back_with_its_passphrase_only(path):
    assert keystore.save(KEY, path, PASSPHRASE, scrypt_n=2) == ADDRESS
    assert keystore.load(path, PASSPHRASE) == KEY
    assert keystore.address(path) == ADDRESS
    with pytest.raises(WalletError, match="the passphrase is wrong, or the file is damaged"):
        keystore.load(path, "correct horsf")


def test_the_file_is_its_owners_and_other_wallets_read_it(path):
    with recursion_limit_kept():
        from eth_account import Account

    keystore.save(KEY, path, PASSPHRASE, scrypt_n=2)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    stored = json.loads(path.read_text())
    assert (stored["version"], stored["crypto"]["kdf"], stored["address"]) == (3, "scrypt", ADDRESS[2:].lower())
    assert bytes(Account.decrypt(stored, PASSPHRASE)) == KEY
    assert KEY.hex() not in path.read_text()


def test_a_keystore_of_other_software_opens(path):
    with recursion_limit_kept():
        from eth_account import Account

    path.write_text(json.dumps(Account.encrypt(KEY, PASSPHRASE, kdf="pbkdf2", iterations=2)))
    assert keystore.load(path, PASSPHRASE) == KEY


def test_nothing_is_ever_overwritten(path):
    path.write_text("precious")
    with pytest.raises(WalletError, match=r"wallet\.json already exists"):
        keystore.save(KEY, path, PASSPHRASE, scrypt_n=2)
    assert path.read_text() == "precious"


def test_a_weak_passphrase_is_refused(path):
    with pytest.raises(WalletError, match="7 characters is too weak"):
        keystore.save(KEY, path, "1234567", scrypt_n=2)
    assert not path.exists()


@pytest.mark.parametrize("content", ["", "{}", "[1]", "[" * 5000, '{"version": 4}', '{"version": 3, "crypto": {}}'])
def test_what_is_no_keystore(path, content):
    path.write_text(content)
    with pytest.raises(WalletError, match=r"restore it from a backup|does not open"):
        keystore.load(path, PASSPHRASE)


def test_a_keystore_whose_address_was_changed(path):
    keystore.save(KEY, path, PASSPHRASE, scrypt_n=2)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"address": "11" * 20}))
    with pytest.raises(WalletError, match="another key than that of its address"):
        keystore.load(path, PASSPHRASE)


@pytest.mark.parametrize("text", [KEY.hex(), "0x" + KEY.hex(), f"  0x{KEY.hex().upper().replace('0X', '')}\n"])
def test_keys_as_people_have_them(text):
    assert keystore.parse_key(text) == KEY


@pytest.mark.parametrize("text", ["", "0x", "12", KEY.hex()[:-1], KEY.hex() + "00", "00" * 32, "ff" * 32, "zz" * 32])
def test_what_is_no_key_is_refused_and_not_shown(text):
    with pytest.raises(WalletError, match="this is not a private key") as caught:
        keystore.parse_key(text)
    assert len(text) < 4 or text not in str(caught.value)


def test_the_passphrase_comes_from_the_file_then_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "passphrase"
    file.write_text("from the file\r\n")
    monkeypatch.setenv(PASSPHRASE_ENV, "from the environment")
    assert keystore.passphrase(str(file)) == "from the file"
    assert keystore.passphrase(None) == "from the environment"
    monkeypatch.delenv(PASSPHRASE_ENV)
    monkeypatch.setattr("os.isatty", lambda _: False)
    with pytest.raises(WalletError, match=PASSPHRASE_ENV):
        keystore.passphrase(None)
    with pytest.raises(WalletError, match="cannot read the passphrase file"):
        keystore.passphrase(str(tmp_path / "none"))


def test_a_new_passphrase_is_asked_for_twice(monkeypatch):
    monkeypatch.delenv(PASSPHRASE_ENV, raising=False)
    monkeypatch.setattr("os.isatty", lambda _: True)
    typed = iter(["once upon", "once upon", "once upon", "a time"])
    monkeypatch.setattr("getpass.getpass", lambda _: next(typed))
    assert keystore.passphrase(None, new=True) == "once upon"
    with pytest.raises(WalletError, match="differ"):
        keystore.passphrase(None, new=True)


def test_the_commands(path, tmp_path, monkeypatch, capsys, quick, deployed):
    monkeypatch.setenv(PASSPHRASE_ENV, PASSPHRASE)
    (tmp_path / "key.txt").write_text(KEY.hex())
    assert main(["wallet", "import", "--keystore", str(path), "--key-file", str(tmp_path / "key.txt")]) == 0
    assert main(["wallet", "address", "--keystore", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == ADDRESS
    balance = ["wallet", "balance", "--keystore", str(path), "--rpc-url", deployed.chain.url]
    assert main(balance) == 0
    printed = capsys.readouterr()
    assert "balance  0 ETH on chain 31337" in printed.out
    assert "warning: this pays for few submissions" in printed.err
    deployed.chain.fund(ADDRESS, 1_500_000_000_000_000_000)
    assert main(balance) == 0
    printed = capsys.readouterr()
    assert ("balance  1.5 ETH on chain 31337" in printed.out, printed.err) == (True, "")
    assert main([*balance[:-1], "http://127.0.0.1:9"]) == 1
    assert re.search(r"cannot be reached .* and --rpc-url is right$", capsys.readouterr().err)
    assert main(["wallet", "create", "--keystore", str(path)]) == 1
    assert "already exists" in capsys.readouterr().err
    assert main(["wallet", "create", "--keystore", str(tmp_path / "new.json")]) == 0
    printed = capsys.readouterr()
    assert keystore.load(tmp_path / "new.json", PASSPHRASE).hex() not in printed.out + printed.err
    assert PASSPHRASE not in printed.out + printed.err


def test_a_private_key_is_not_taken_from_a_pipe_by_chance(path, monkeypatch, capsys):
    monkeypatch.setattr("os.isatty", lambda _: False)
    assert main(["wallet", "import", "--keystore", str(path)]) == 1
    assert "give a file with --key-file" in capsys.readouterr().err
