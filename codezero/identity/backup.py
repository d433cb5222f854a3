"""A backup of a node's key, encrypted with a passphrase: a PEM file that `openssl pkey` opens too.

The container is PKCS#8's EncryptedPrivateKeyInfo (RFC 5958) with PBES2 (RFC 8018). It is encoded here because
`cryptography` writes it, and the MAC of its PKCS#12 too, with 2048 rounds of key derivation: too few for a file whose
passphrase may be guessed offline.
"""

from __future__ import annotations

import base64
import os
import textwrap

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, padding, serialization
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

from codezero.errors import CodezeroError, IdentityError
from codezero.identity.key import Identity
from codezero.identity.names import animal_name

MIN_PASSPHRASE = 8
"""The fewest characters of a passphrase."""
KDF_ROUNDS = 600_000
"""Iterations of PBKDF2 with HMAC-SHA-256, as the OWASP Password Storage Cheat Sheet recommends."""

_INTEGER, _OCTETS, _NULL, _OBJECT, _SEQUENCE = 0x02, 0x04, 0x05, 0x06, 0x30
_PBES2 = bytes.fromhex("2a864886f70d01050d")  # 1.2.840.113549.1.5.13
_PBKDF2 = bytes.fromhex("2a864886f70d01050c")  # 1.2.840.113549.1.5.12
_HMAC_SHA256 = bytes.fromhex("2a864886f70d0209")  # 1.2.840.113549.2.9
_AES256_CBC = bytes.fromhex("60864801650304012a")  # 2.16.840.1.101.3.4.1.42


def export_key(identity: Identity, passphrase: str) -> bytes:
    """Returns the encrypted key in PEM, below a line that names the peer. Raises IdentityError: weak passphrase."""
    if len(passphrase) < MIN_PASSPHRASE:
        raise IdentityError(
            f"a passphrase of {len(passphrase)} characters is too weak for a backup: use {MIN_PASSPHRASE} or more"
        )
    key = identity.private_key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    text = "\n".join(textwrap.wrap(base64.b64encode(_encrypted(key, encoded(passphrase, IdentityError))).decode(), 64))
    return (
        f"Key of peer {identity.peer_id} ({animal_name(identity.peer_id)})\n"
        f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{text}\n-----END ENCRYPTED PRIVATE KEY-----\n"
    ).encode()


def import_key(data: bytes, passphrase: str) -> Identity:
    """Inverts `export_key`. Raises IdentityError: the passphrase is wrong, or the data are damaged or no node's key."""
    if not passphrase:
        raise IdentityError("the passphrase is empty: give the one that the key was exported with")
    try:
        key = serialization.load_pem_private_key(data, encoded(passphrase, IdentityError))
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise IdentityError(
            "the backup does not open: the passphrase is wrong, or the file is damaged or no encrypted key"
        ) from error
    try:
        return Identity.of(key)
    except ValueError as error:
        raise IdentityError(
            f"the backup cannot be used ({error}): give one that `codezero identity export` made"
        ) from error


def encoded(passphrase: str, kind: type[CodezeroError]) -> bytes:
    """Returns a passphrase's bytes. Raises an error of this kind: it is not valid UTF-8."""
    try:
        return passphrase.encode()
    except UnicodeEncodeError as error:
        raise kind("the passphrase is not valid UTF-8: use another one") from error


def _encrypted(key: bytes, passphrase: bytes) -> bytes:
    """Returns EncryptedPrivateKeyInfo in DER: the algorithms with their parameters, and the ciphertext."""
    salt, iv = os.urandom(16), os.urandom(16)
    derived = PBKDF2HMAC(algorithm=hashes.SHA256(), length=32, salt=salt, iterations=KDF_ROUNDS).derive(passphrase)
    padder = padding.PKCS7(128).padder()
    encryptor = Cipher(algorithms.AES256(derived), modes.CBC(iv)).encryptor()
    ciphertext = encryptor.update(padder.update(key) + padder.finalize()) + encryptor.finalize()
    rounds = KDF_ROUNDS.to_bytes(KDF_ROUNDS.bit_length() // 8 + 1, "big")  # with a zero bit first: DER's are signed
    prf = _sequence(_der(_OBJECT, _HMAC_SHA256), _der(_NULL, b""))
    kdf = _sequence(_der(_OBJECT, _PBKDF2), _sequence(_der(_OCTETS, salt), _der(_INTEGER, rounds), prf))
    cipher = _sequence(_der(_OBJECT, _AES256_CBC), _der(_OCTETS, iv))
    return _sequence(_sequence(_der(_OBJECT, _PBES2), _sequence(kdf, cipher)), _der(_OCTETS, ciphertext))


def _sequence(*items: bytes) -> bytes:
    return _der(_SEQUENCE, b"".join(items))


def _der(tag: int, content: bytes) -> bytes:
    """Returns one element of DER: its tag, its length in the shortest form, and its content."""
    length = len(content)
    if length < 0x80:
        return bytes([tag, length]) + content
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(size)]) + size + content
