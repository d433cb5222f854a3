"""A node's identity: an RSA key in a file that hivemind reads too, and the peer id that follows from it.

The file has libp2p's `PrivateKey` message: key type RSA and the key in PKCS#1 DER. A peer id is the base58 form of
the SHA-256 multihash of the `PublicKey` message
(https://github.com/libp2p/specs/blob/master/peer-ids/peer-ids.md).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import tempfile
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import base58
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from codezero.errors import IdentityError
from codezero.runtime.files import sync_folder

KEY_BITS = 2048
MAX_KEY_BITS = 4096
"""The most bits of a key. Peers' larger keys are refused, since verifying their signatures would cost too much time."""
PUBLIC_EXPONENT = 65537
"""The exponent of all nodes' keys, libp2p's too."""
_SHA256_MULTIHASH = b"\x12\x20"
_PADDING = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.DIGEST_LENGTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A node's key pair."""

    peer_id: str
    public_key: bytes
    """The public key as SubjectPublicKeyInfo in DER."""
    private_key: rsa.RSAPrivateKey = field(repr=False)

    @classmethod
    def generate(cls) -> Identity:
        """Returns an identity with a new key."""
        return cls.of(rsa.generate_private_key(public_exponent=PUBLIC_EXPONENT, key_size=KEY_BITS))

    @classmethod
    def of(cls, key: PrivateKeyTypes | None) -> Identity:
        """Returns the identity of a key. Raises ValueError: it is not an RSA key of a form that peers accept."""
        if not isinstance(key, rsa.RSAPrivateKey):
            raise ValueError("it holds no RSA key")
        if not KEY_BITS <= key.key_size <= MAX_KEY_BITS:
            raise ValueError(f"its key has {key.key_size} bits, and peers take {KEY_BITS} to {MAX_KEY_BITS}")
        exponent = key.public_key().public_numbers().e
        if exponent != PUBLIC_EXPONENT:
            raise ValueError(f"its key has the exponent {exponent}, and peers take {PUBLIC_EXPONENT} alone")
        public_key = key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return cls(peer_id=peer_id_of(public_key), public_key=public_key, private_key=key)

    def sign(self, data: bytes) -> bytes:
        """Returns a signature by RSASSA-PSS with SHA-256, which is as long as the key."""
        return self.private_key.sign(data, _PADDING, hashes.SHA256())

    def to_file_bytes(self) -> bytes:
        """Returns the key as the content of a key file (swarm.pem)."""
        der = self.private_key.private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        return _key_message(der)


def peer_id_of(public_key: bytes) -> str:
    """Returns the peer id of a public key in DER."""
    digest = hashlib.sha256(_key_message(public_key)).digest()
    return str(base58.b58encode(_SHA256_MULTIHASH + digest), "ascii")


def is_signed_by(public_key: bytes, data: bytes, signature: bytes) -> bool:
    """Returns True if the key has signed the data; False also if it is not an RSA key of an accepted size."""
    key = _load_public_key(public_key)
    if key is None:
        return False
    try:
        key.verify(signature, data, _PADDING, hashes.SHA256())
    except InvalidSignature:
        return False
    return True


@lru_cache(maxsize=1024)
def _load_public_key(public_key: bytes) -> rsa.RSAPublicKey | None:
    try:
        key = serialization.load_der_public_key(public_key)
    except (ValueError, UnsupportedAlgorithm):
        return None
    if not isinstance(key, rsa.RSAPublicKey) or not KEY_BITS <= key.key_size <= MAX_KEY_BITS:
        return None
    # A check takes time by the length of the exponent, which a stranger chooses.
    return key if key.public_numbers().e == PUBLIC_EXPONENT else None


def load(path: Path) -> Identity:
    """Reads a key file. Raises IdentityError: it cannot be read, or has no node's key."""
    try:
        return from_file_bytes(path.read_bytes())
    except OSError as error:
        raise IdentityError(
            f"cannot read the node's key {path}: {error.strerror}; make it a readable file, or name another with "
            "swarm.identity_path=..."
        ) from error
    except ValueError as error:
        raise IdentityError(
            f"{path} is not a node's key ({error}): restore it from a backup, or move it away to start as a new peer"
        ) from error


def load_or_create(path: Path) -> tuple[Identity, bool]:
    """Returns the identity in a file and False, or makes the file and returns a new identity and True. If several
    processes do so at once, all get the same key. Raises IdentityError: the file cannot be read or made."""
    if os.path.lexists(path):
        return load(path), False
    identity = Identity.generate()
    try:
        write_new(path, identity.to_file_bytes())
    except FileExistsError:
        return load(path), False
    return identity, True


def save(identity: Identity, path: Path) -> None:
    """Writes a new key file. Raises IdentityError: the path is taken or cannot be written."""
    try:
        write_new(path, identity.to_file_bytes())
    except FileExistsError as error:
        raise IdentityError(f"{path} already exists: move it away first, it may be the only copy of a key") from error


def write_new(path: Path, content: bytes) -> None:
    """Writes a file that only its owner may read, whole or not at all, and replaces none.

    Raises FileExistsError: the path is taken; IdentityError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _give_name(temporary, path)
        sync_folder(path.parent)
    except FileExistsError:
        raise
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _give_name(temporary: str, path: Path) -> None:
    """Gives a file the name of a new one. Raises FileExistsError: the name is taken."""
    try:
        os.link(temporary, path)  # unlike a rename it never replaces a file
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        # The disk has no hard links, as most USB sticks: an empty file takes the name first.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.replace(temporary, path)


def _unwritable(path: Path, error: OSError) -> IdentityError:
    return IdentityError(f"cannot write {path}: {error.strerror}; give another path")


def from_file_bytes(raw: bytes) -> Identity:
    """Inverts `Identity.to_file_bytes`. Raises ValueError: the data are not a node's key file."""
    if raw[:3] != b"\x08\x00\x12":
        raise ValueError("it does not start like a libp2p RSA key")
    length, start = _read_varint(raw, 3)
    if start + length != len(raw):
        raise ValueError(f"it has {len(raw)} bytes and should have {start + length}")
    try:
        key = serialization.load_der_private_key(raw[start:], password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError("its key is damaged, encrypted or of an unknown kind") from error
    return Identity.of(key)


def _key_message(der: bytes) -> bytes:
    """Encodes libp2p's PublicKey or PrivateKey message in protobuf: field 1 is the key type, 0 for RSA, 2 the key."""
    return b"\x08\x00\x12" + _varint(len(der)) + der


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def _read_varint(raw: bytes, start: int) -> tuple[int, int]:
    value = 0
    for position in range(start, min(start + 4, len(raw))):
        value |= (raw[position] & 0x7F) << 7 * (position - start)
        if raw[position] < 0x80:
            return value, position + 1
    raise ValueError("it is cut off")
