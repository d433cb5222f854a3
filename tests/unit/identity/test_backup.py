import shutil
import subprocess

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from codezero.errors import IdentityError
from codezero.identity import backup
from codezero.identity.backup import export_key, import_key
from codezero.identity.key import Identity


@pytest.fixture(scope="module")
def key():
    return Identity.generate()


@pytest.mark.parametrize("passphrase", ["12345678", "eight wörds or 🦊", "x" * 1000])
def test_a_backup_opens_with_its_passphrase_only(key, passphrase):
    exported = export_key(key, passphrase)
    assert import_key(exported, passphrase).to_file_bytes() == key.to_file_bytes()
    assert key.peer_id.encode() in exported.splitlines()[0]
    with pytest.raises(IdentityError, match="the passphrase is wrong, or the file is damaged"):
        import_key(exported, passphrase + " ")


def test_two_backups_of_a_key_share_no_salt(key):
    first, second = (export_key(key, "12345678").splitlines() for _ in range(2))
    assert first[:2] == second[:2]
    assert first[3] != second[3]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_opens_a_backup_and_confirms_how_hard_it_is_to_guess(key, tmp_path):
    (tmp_path / "backup.pem").write_bytes(export_key(key, "12345678"))
    run = {"cwd": tmp_path, "capture_output": True, "check": True}
    opened = subprocess.run(
        ["openssl", "pkey", "-in", "backup.pem", "-passin", "pass:12345678", "-outform", "DER"], **run
    )
    assert Identity.of(serialization.load_der_private_key(opened.stdout, None)).peer_id == key.peer_id
    structure = subprocess.run(["openssl", "asn1parse", "-in", "backup.pem"], **run).stdout.decode()
    rounds = f":{600_000:06X}"
    assert all(part in structure for part in (":PBES2", ":PBKDF2", ":hmacWithSHA256", ":aes-256-cbc", rounds))


@pytest.mark.parametrize("passphrase", ["", "1234567", "ééééééé"])
def test_a_short_passphrase_is_refused(key, passphrase):
    with pytest.raises(
        IdentityError, match=rf"of {len(passphrase)} characters is too weak for a backup: use 8 or more"
    ):
        export_key(key, passphrase)


def test_a_passphrase_that_is_no_text_is_refused(key):
    with pytest.raises(IdentityError, match="not valid UTF-8"):
        export_key(key, "12345678\udcff")


def test_an_empty_passphrase_opens_nothing():
    with pytest.raises(IdentityError, match="the passphrase is empty"):
        import_key(b"", "")


def pem(private_key, encryption):
    return private_key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


def test_damage_anywhere_is_noticed(key, monkeypatch):
    monkeypatch.setattr(backup, "KDF_ROUNDS", 2048)
    whole = export_key(key, "12345678")
    start = whole.index(b"KEY-----") + 9
    for place in range(start, len(whole) - 36, 37):
        damaged = whole[:place] + (b"A" if whole[place : place + 1] != b"A" else b"B") + whole[place + 1 :]
        with pytest.raises(IdentityError, match="the backup does not open"):
            import_key(damaged, "12345678")
    for length in range(0, len(whole) - 1, 97):
        with pytest.raises(IdentityError, match="the backup does not open"):
            import_key(whole[:length], "12345678")


@pytest.mark.parametrize("raw", [b"", b"\0" * 5000, b"\x08\x00\x12", b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n"])
def test_what_is_no_backup_is_refused(raw):
    with pytest.raises(IdentityError, match="the backup does not open"):
        import_key(raw, "12345678")


def test_a_key_that_no_node_can_use_is_refused(key):
    secret = serialization.BestAvailableEncryption(b"12345678")
    with pytest.raises(IdentityError, match=r"the backup cannot be used \(it holds no RSA key\)"):
        import_key(pem(ec.generate_private_key(ec.SECP256R1()), secret), "12345678")
    with pytest.raises(IdentityError, match=r"the backup cannot be used \(its key has 1024 bits"):
        import_key(pem(rsa.generate_private_key(65537, 1024), secret), "12345678")
    with pytest.raises(IdentityError, match="no encrypted key"):
        import_key(pem(key.private_key, serialization.NoEncryption()), "12345678")
