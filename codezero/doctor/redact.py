"""Removes secrets from text: known ones, in every encoding they may have, and whatever looks like a secret."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus

from codezero.doctor.patterns import BY_LOOKS, HEX, KEY58, LONG, phrases

REMOVED = "[removed]"
SHORTEST = 6
"""The length of the shortest text that is searched for: shorter ones would match everywhere."""
_GRAM = 16
"""The number of consecutive characters by which a piece of a long secret is recognised, as of a key over two lines."""
_PEER_ID = re.compile(r"Qm[1-9A-HJ-NP-Za-km-z]{44}|12D3Koo[1-9A-HJ-NP-Za-km-z]{45}")


class Redactor:
    """Removes known secrets, private names, and whatever looks like a secret, from texts."""

    def __init__(
        self, secrets: Iterable[bytes], names: Mapping[str, str] | None = None, public: Iterable[str] = ()
    ) -> None:
        """`names` maps words that are replaced, such as the user's name, to their replacements; `public` is hex that
        looks like a key but is not, such as the hash of a transaction."""
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
        """Returns whether a known secret, or a piece of one, is in the text."""
        return next(self._spans(text.encode("utf-8", "surrogatepass").lower()), None) is not None

    def _without_known(self, text: str) -> str:
        raw = text.encode("utf-8", "surrogatepass")
        kept, end = [], 0
        for start, stop in sorted(self._spans(raw.lower())):  # bytes.lower() changes only ASCII, and keeps the length
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
    """Returns the ways a secret may be written in a text: plain, escaped, URL-encoded, in hex, and in base64, also as
    a part of longer base64. They are compared without regard to case, since hex is written in both.
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
    """Yields the base64 of a secret for each of the three offsets it may have in a group of three bytes, without the
    characters that also depend on the bytes before or after it."""
    for lead in range(3):
        shared = 1 if (lead + len(secret)) % 3 else 0
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(b"\0" * lead + secret).rstrip(b"=")
            yield whole[(0, 2, 3)[lead] : len(whole) - shared]


def _without_base64(match: re.Match[str]) -> str:
    """Returns the replacement of a match of `LONG`: removed if it looks like base64; peer ids and paths stay, since
    they help to find the problem."""
    rest = _PEER_ID.sub("", match[0])
    upper, lower = sum(char.isupper() for char in rest), sum(char.islower() for char in rest)
    digits, slashes = sum(char.isdigit() for char in rest), rest.count("/")
    mixed = min(upper, lower) >= len(rest) // 6 and digits >= 3 and slashes <= len(rest) // 12
    return REMOVED if len(rest) >= 40 and mixed else match[0]
