import errno
import os
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from codezero.errors import IdentityError
from codezero.identity import key as identity
from codezero.identity.key import Identity, is_signed_by, load, load_or_create, peer_id_of, save


@pytest.fixture(scope="module")
def key():
    return Identity.generate()


def message(private_key):
    """The key file of any private key."""
    der = private_key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return b"\x08\x00\x12" + bytes([len(der) & 0x7F | 0x80, len(der) >> 7]) + der


def test_hivemind_reads_our_file_and_sees_the_same_peer(tmp_path, key):
    from hivemind.p2p import PeerID

    save(key, tmp_path / "swarm.pem")
    assert PeerID.from_identity((tmp_path / "swarm.pem").read_bytes()).to_base58() == key.peer_id


def test_we_read_hiveminds_file_and_see_the_same_peer(tmp_path):
    from hivemind.p2p import P2P, PeerID

    P2P.generate_identity(str(tmp_path / "swarm.pem"))
    raw = (tmp_path / "swarm.pem").read_bytes()
    assert load(tmp_path / "swarm.pem").peer_id == PeerID.from_identity(raw).to_base58()
    assert load(tmp_path / "swarm.pem").to_file_bytes() == raw


def test_a_signature_holds_for_its_data_and_its_key_only(key):
    signature = key.sign(b"round 7")
    assert is_signed_by(key.public_key, b"round 7", signature)
    assert peer_id_of(key.public_key) == key.peer_id
    assert not is_signed_by(key.public_key, b"round 8", signature)
    assert not is_signed_by(key.public_key, b"round 7", signature[:-1] + bytes([signature[-1] ^ 1]))
    assert not is_signed_by(Identity.generate().public_key, b"round 7", signature)


def test_the_private_key_is_in_no_text_about_an_identity(key):
    assert "private" not in repr(key)


def test_a_first_start_makes_the_key_and_later_ones_keep_it(tmp_path):
    path = tmp_path / "new" / "swarm.pem"
    first, made = load_or_create(path)
    assert made
    assert path.stat().st_mode & 0o777 == 0o600
    second, made = load_or_create(path)
    assert not made
    assert second.peer_id == first.peer_id
    assert [entry.name for entry in path.parent.iterdir()] == ["swarm.pem"]


def test_save_never_replaces_a_key(tmp_path, key):
    path = tmp_path / "swarm.pem"
    save(key, path)
    with pytest.raises(IdentityError, match=r"swarm\.pem already exists: move it away first"):
        save(Identity.generate(), path)
    assert load(path).peer_id == key.peer_id
    assert [entry.name for entry in tmp_path.iterdir()] == ["swarm.pem"]


def test_a_key_is_kept_on_a_disk_without_hard_links(tmp_path, monkeypatch, key):
    def no_links(source, target):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_links)
    save(key, tmp_path / "swarm.pem")
    assert load(tmp_path / "swarm.pem").peer_id == key.peer_id
    assert (tmp_path / "swarm.pem").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["swarm.pem"]
    with pytest.raises(IdentityError, match="already exists"):
        save(Identity.generate(), tmp_path / "swarm.pem")
    assert load(tmp_path / "swarm.pem").peer_id == key.peer_id


def test_who_loses_the_race_to_make_the_key_takes_the_winners(tmp_path, monkeypatch, key):
    path = tmp_path / "swarm.pem"

    def generate_while_another_saves(_):
        save(key, path)
        return Identity.of(rsa.generate_private_key(public_exponent=65537, key_size=2048))

    monkeypatch.setattr(Identity, "generate", classmethod(generate_while_another_saves))
    found, made = load_or_create(path)
    assert (found.peer_id, made) == (key.peer_id, False)


def test_processes_that_start_at_once_agree_on_one_key(tmp_path):
    code = (
        "import sys; from pathlib import Path; from codezero.identity.key import load_or_create; sys.stdin.read(1);"
        "key, made = load_or_create(Path(sys.argv[1])); print(key.peer_id, made)"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, tmp_path / "swarm.pem"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in started:
        process.stdin.write("x")
        process.stdin.flush()
    found = [process.communicate(timeout=300)[0].split() for process in started]
    assert len({peer_id for peer_id, _ in found}) == 1
    assert sorted(made for _, made in found) == ["False", "False", "True"]


def test_a_full_disk_leaves_no_half_of_a_key(tmp_path, monkeypatch, key):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(IdentityError, match=r"cannot write .*swarm\.pem: No space left on device; give another path"):
        save(key, tmp_path / "swarm.pem")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "swarm.pem", tmp_path / "file" / "deeper" / "swarm.pem"):
        with pytest.raises(IdentityError, match=r"cannot write .*swarm\.pem: .*; give another path"):
            load_or_create(path)


def bad_files():
    key = Identity.generate()
    whole = key.to_file_bytes()
    pkcs8 = (serialization.Encoding.DER, serialization.PrivateFormat.PKCS8)
    encrypted = key.private_key.private_bytes(*pkcs8, serialization.BestAvailableEncryption(b"secret"))
    pem = key.private_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return {
        "empty": (b"", "does not start like a libp2p RSA key"),
        "head_only": (b"\x08\x00\x12", "it is cut off"),
        "endless_length": (b"\x08\x00\x12" + b"\xff" * 20, "it is cut off"),
        "truncated": (whole[:-1], f"it has {len(whole) - 1} bytes and should have {len(whole)}"),
        "trailing_byte": (whole + b"\0", f"it has {len(whole) + 1} bytes and should have {len(whole)}"),
        "damaged": (whole[:600] + bytes([whole[600] ^ 4]) + whole[601:], "its key is damaged"),
        "zeros": (whole[:5] + bytes(len(whole) - 5), "its key is damaged"),
        "real_pem": (pem, "does not start like a libp2p RSA key"),
        "encrypted": (
            b"\x08\x00\x12" + bytes([len(encrypted) & 0x7F | 0x80, len(encrypted) >> 7]) + encrypted,
            "damaged",
        ),
        "ed25519": (b"\x08\x01\x12\x40" + bytes(64), "does not start like a libp2p RSA key"),
        "elliptic": (message(ec.generate_private_key(ec.SECP384R1())), "it holds no RSA key"),
        "another exponent": (message(rsa.generate_private_key(3, 2048)), "the exponent 3, and peers take 65537 alone"),
        "small": (message(rsa.generate_private_key(65537, 1024)), "its key has 1024 bits, and peers take 2048 to 4096"),
    }


@pytest.mark.parametrize(("raw", "fault"), bad_files().values(), ids=bad_files().keys())
def test_a_bad_file_is_named_with_its_fault_and_kept(tmp_path, raw, fault):
    path = tmp_path / "swarm.pem"
    path.write_bytes(raw)
    with pytest.raises(IdentityError) as caught:
        load_or_create(path)
    assert f"{path} is not a node's key (" in str(caught.value)
    assert fault in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == raw


def test_a_folder_and_a_dangling_link_are_no_keys(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(IdentityError, match=r"cannot read the node's key .*folder: Is a directory; make it a readable"):
        load_or_create(tmp_path / "folder")
    with pytest.raises(IdentityError, match=r"cannot read the node's key .*link: No such file or directory"):
        load_or_create(tmp_path / "link")


def test_an_unreadable_file_is_named(tmp_path, monkeypatch, key):
    def unreadable(_):
        raise PermissionError(13, "Permission denied")

    save(key, tmp_path / "swarm.pem")
    monkeypatch.setattr(identity.Path, "read_bytes", unreadable)
    with pytest.raises(IdentityError, match=r"cannot read the node's key .*swarm\.pem: Permission denied"):
        load_or_create(tmp_path / "swarm.pem")


@pytest.mark.parametrize("raw", [b"", b"\x30\x03\x02\x01\x00", b"\xff" * 300])
def test_what_is_no_public_key_has_signed_nothing(raw):
    assert not is_signed_by(raw, b"data", b"signature")


@pytest.mark.parametrize("bits", [1024, 8192])
def test_a_peers_key_of_an_unreasonable_size_is_refused(bits):
    private = rsa.generate_private_key(65537, 1024)
    numbers = private.public_key().public_numbers()
    modulus = numbers.n if bits == 1024 else (1 << 8191) | 1
    public = rsa.RSAPublicNumbers(65537, modulus).public_key()
    der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert identity._load_public_key(der) is None


def test_a_key_whose_signatures_take_long_to_check_has_signed_nothing():
    private = rsa.generate_private_key(3, 2048)
    der = private.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    slow = Identity(peer_id="slow", public_key=der, private_key=private)
    assert not is_signed_by(slow.public_key, b"data", slow.sign(b"data"))
