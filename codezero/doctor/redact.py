"""Taking secrets out of text: those that are known, however they are written, and whatever looks like one."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus

from codezero.doctor.patterns import BY_LOOKS, HEX, KEY58, LONG, phrases

REMOVED = "[removed]"
SHORTEST = 6
"""Characters of a form of a secret: what is shorter would be found everywhere."""
_GRAM = 16
"""Characters in a row of a long secret by which a piece of it is recognised, as in a key that is split over lines."""
_PEER_ID = re.compile(r"Qm[1-9A-HJ-NP-Za-km-z]{44}|12D3Koo[1-9A-HJ-NP-Za-km-z]{45}")


class Redactor:
    """Takes the known secrets and private names, and all that looks like a secret, out of texts."""

    def __init__(
        self, secrets: Iterable[bytes], names: Mapping[str, str] | None = None, public: Iterable[str] = ()
    ) -> None:
        """`names` are words to be replaced, such as the user's, with what takes their place; `public` is hex that looks
        like a key and is none, such as the hash of a transaction."""
        self._public = {value.lower() for value in public}
        self._known = sorted({form.lower() for secret in secrets for form in forms(secret)})
        self._grams = {
            form[start : start + _GRAM]
            for form in self._known
            if len(form) >= 2 * _GRAM and re.fullmatch(rb"[\w+/=-]+", form)
            for start in range(len(form) - _GRAM + 1)
        }
        self._names = [
            (re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])"), instead)
            for name, instead in sorted((names or {}).items(), key=lambda item: -len(item[0]))
        ]

    def __call__(self, text: str) -> str:
        text = self._without_known(text)
        for pattern, kept in BY_LOOKS:
            text = pattern.sub(kept + REMOVED, text)
        text = HEX.sub(lambda found: found[0] if found[0].lower() in self._public else REMOVED, text)
        text = LONG.sub(_without_base64, KEY58.sub(REMOVED, text))
        for start, stop in reversed(list(phrases(text))):
            text = text[:start] + REMOVED + text[stop:]
        for name, instead in self._names:
            text = name.sub(instead, text)
        return text

    def finds(self, text: str) -> bool:
        """Whether a known secret, or a piece of one, is in the text."""
        return next(self._spans(text.encode("utf-8", "surrogatepass").lower()), None) is not None

    def _without_known(self, text: str) -> str:
        raw = text.encode("utf-8", "surrogatepass")
        kept, end = [], 0
        for start, stop in sorted(self._spans(raw.lower())):  # lower() of bytes changes ASCII alone, and no length
            if start > end:
                kept.append(raw[end:start])
            if stop > end:
                kept.append(REMOVED.encode())
                end = stop
        kept.append(raw[end:])
        return b"".join(kept).decode("utf-8", "replace")

    def _spans(self, raw: bytes) -> Iterator[tuple[int, int]]:
        for form in self._known:
            start = raw.find(form)
            while start >= 0:
                yield start, start + len(form)
                start = raw.find(form, start + len(form))
        for run in re.finditer(rb"[\w+/=-]{%d,}" % _GRAM, raw) if self._grams else ():
            found = run[0]
            if any(found[start : start + _GRAM] in self._grams for start in range(len(found) - _GRAM + 1)):
                yield run.span()


def forms(secret: bytes) -> set[bytes]:
    """How a secret may stand in a text: as it is, escaped, URL-encoded, in hex, and in base64, also inside of more.

    They are compared without regard to case: hex is written in both.
    """
    text = secret.decode("utf-8", "surrogateescape")
    found = {secret, secret.hex().encode(), secret.hex(":").encode(), quote(secret, safe="").encode()}
    found |= {quote_plus(secret).encode(), repr(secret)[2:-1].encode(), ascii(text)[1:-1].encode()}
    found |= {json.dumps(text)[1:-1].encode(), json.dumps(text).replace("/", "\\/")[1:-1].encode(), *_base64(secret)}
    found.add(json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogateescape"))
    digits = text[2:] if text.lower().startswith("0x") else text
    if len(digits) >= 32 and len(digits) % 2 == 0 and re.fullmatch("[0-9a-fA-F]+", digits):
        found |= {digits.encode(), *_base64(bytes.fromhex(digits))}
    return {form for form in found if len(form) >= SHORTEST}


def _base64(secret: bytes) -> Iterator[bytes]:
    """There are three ways to write bytes, by where in a group of three they start; characters that also tell of what
    stands before or after them are left out."""
    for lead in range(3):
        shared = 1 if (lead + len(secret)) % 3 else 0
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(b"\0" * lead + secret).rstrip(b"=")
            yield whole[(0, 2, 3)[lead] : len(whole) - shared]


def _without_base64(match: re.Match[str]) -> str:
    """Long base64 of any origin; peer ids and paths stay, of which a support needs to know."""
    rest = _PEER_ID.sub("", match[0])
    upper, lower = sum(char.isupper() for char in rest), sum(char.islower() for char in rest)
    digits, slashes = sum(char.isdigit() for char in rest), rest.count("/")
    mixed = min(upper, lower) >= len(rest) // 6 and digits >= 3 and slashes <= len(rest) // 12
    return REMOVED if len(rest) >= 40 and mixed else match[0]
