"""Who a node is: an RSA key in a file that hivemind reads too, and the peer id that follows from it.

The file holds libp2p's `PrivateKey` message: key type RSA and the key in PKCS#1 DER. A peer id is the base58 form of
the SHA-256 multihash of the `PublicKey` message
(https://github.com/libp2p/specs/blob/master/peer-ids/peer-ids.md).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import base58
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from codezero.errors import IdentityError

KEY_BITS = 2048
MAX_KEY_BITS = 4096
"""A larger key of a peer is refused: verifying it would be work for us."""
_SHA256_MULTIHASH = b"\x12\x20"
_PADDING = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.DIGEST_LENGTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A node's key pair."""

    peer_id: str
    public_key: bytes
    """DER, SubjectPublicKeyInfo."""
    _key: rsa.RSAPrivateKey = field(repr=False)

    @classmethod
    def generate(cls) -> Identity:
        return cls.of(rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS))

    @classmethod
    def of(cls, key: rsa.RSAPrivateKey) -> Identity:
        public_key = key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return cls(peer_id=peer_id_of(public_key), public_key=public_key, _key=key)

    def sign(self, data: bytes) -> bytes:
        """RSASSA-PSS with SHA-256; as many bytes as the key has."""
        return self._key.sign(data, _PADDING, hashes.SHA256())

    def to_file_bytes(self) -> bytes:
        """The content of swarm.pem."""
        der = self._key.private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        return _key_message(der)


def peer_id_of(public_key: bytes) -> str:
    """The peer id that belongs to a public key in DER."""
    digest = hashlib.sha256(_key_message(public_key)).digest()
    return base58.b58encode(_SHA256_MULTIHASH + digest).decode()


def is_signed_by(public_key: bytes, data: bytes, signature: bytes) -> bool:
    """Whether a key signed the data; False as well for what is no acceptable RSA key."""
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
    return key if isinstance(key, rsa.RSAPublicKey) and KEY_BITS <= key.key_size <= MAX_KEY_BITS else None


def load(path: Path) -> Identity:
    """Raises IdentityError: the file cannot be read or holds no such key."""
    try:
        return from_file_bytes(path.read_bytes())
    except OSError as error:
        raise IdentityError(f"cannot read the node's key {path}: {error.strerror}") from error
    except ValueError as error:
        raise IdentityError(
            f"{path} is not a node's key ({error}): restore it from a backup, or move it away to start as a new peer"
        ) from error


def load_or_create(path: Path) -> tuple[Identity, bool]:
    """The identity in the file, made if there is none, and whether it was made. Raises IdentityError."""
    if path.exists():
        return load(path), False
    identity = Identity.generate()
    save(identity, path)
    return identity, True


def save(identity: Identity, path: Path) -> None:
    """Writes a new key file that only its owner may read. Raises IdentityError: it is there already, or unwritable."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(identity.to_file_bytes())
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)  # unlike a rename, never replaces a key
    except FileExistsError as error:
        raise IdentityError(f"{path} is there already: move it away first, it may be the only copy of a key") from error
    except OSError as error:
        raise IdentityError(f"cannot write the node's key {path}: {error.strerror}; give another path") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def from_file_bytes(raw: bytes) -> Identity:
    """The inverse of `Identity.to_file_bytes`. Raises ValueError: anything else."""
    if raw[:3] != b"\x08\x00\x12":
        raise ValueError("it does not start like a libp2p RSA key")
    length, start = _read_varint(raw, 3)
    if start + length != len(raw):
        raise ValueError(f"it has {len(raw)} bytes and should have {start + length}")
    key = serialization.load_der_private_key(raw[start:], password=None)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise ValueError("its key is not RSA")
    return Identity.of(key)


def _key_message(der: bytes) -> bytes:
    """libp2p's PublicKey and PrivateKey messages in protobuf: field 1 is the key type, 0 for RSA; field 2 the key."""
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
