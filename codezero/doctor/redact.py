"""Removes secrets from text: known ones, in every encoding they may have, and whatever looks like a secret."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus

REMOVED = "[removed]"
SHORTEST = 6
"""The length of the shortest text that is searched for: shorter ones would match everywhere."""
_GRAM = 16
"""The number of consecutive characters by which a piece of a long secret is recognised, such as a key cut in two."""
_PEER_ID = re.compile(r"Qm[1-9A-HJ-NP-Za-km-z]{44}|12D3Koo[1-9A-HJ-NP-Za-km-z]{45}")
_REACH = 20_000
"""The largest length of a PEM block in characters, including prefixes that a log adds to its lines."""
_NAMES = (
    r"(?:pass(?:word|phrase|wd|code)?|secret|token|api[_-]?key|private[_-]?key|session[_-]?key|access[_-]?key|"
    r"account[_-]?key|credentials?|bearer|org[_-]?id|user[_-]?id|otp)"
)
_IS = r"(?:[:=\uff1a\uff1d\ufe55]|\\uff1[ad]|\\ufe55)"
"""A colon or an equals sign, also full-width as East Asian keyboards write it, and also escaped as in JSON."""
_GONE = r"(?!\[(?:removed|set)\])"
_BEGIN, _END = r"-----BEGIN [^\n-]{0,60}-----", r"-----END [^\n-]{0,60}-----"
_SCHEME = r"[a-z][a-z0-9+.-]{1,20}://"
_ALL = (
    # Keys in PEM, also where lines have prefixes, or where the first or last line is missing.
    ("", rf"(?s){_BEGIN}(?:(?!-----BEGIN ).){{0,{_REACH}}}?{_END}"),
    ("", rf"(?s){_BEGIN}.{{0,{_REACH}}}"),
    ("", rf"(?s)\A.{{0,{_REACH}}}{_END}"),
    # URLs with a user, or with a key in their query or path.
    (r"\1", rf"\b({_SCHEME})[^\s/@\"'<>]{{1,500}}(?=@)"),
    (r"\1", rf"\b({_SCHEME}[^\s?\"'<>]{{1,500}}\?)[^\s\"'<>#]{{1,2000}}"),
    (r"\1", rf"\b({_SCHEME}[^\s?\"'<>]{{1,300}}?/)(?=[\w~-]*\d)(?=[\w~-]*[a-z])[\w~-]{{16,}}"),
    # Tokens by their issuers' prefixes.
    ("", r"\b(?:hf|api_org)_(?!(?:endpoint|home|token)\b)[a-z0-9]{6,}"),  # but no names of variables
    ("", r"\b(?:sk-|gsk_|nvapi-|xai-)[a-z0-9_-]{12,}"),  # of servers of models
    ("", r"\b(?:gh[pousr]_[a-z0-9]{16,}|github_pat_\w{16,})"),
    ("", r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"),
    # A value after a word such as "password", or in the secret's column of a known format.
    (r"\1", rf"\b((?:(?:proxy-)?authorization|(?:set-)?cookie)[\"'\\]{{0,3}}\s{{0,3}}{_IS})[^\n]{{1,4000}}"),
    (r"\1", r"\b((?:bearer|basic)\s+)(?=\S*[\d=+/_-])[\w.~+/=-]{6,}"),
    (r"\1", rf"({_NAMES}[\"'\\]{{0,3}}\s{{0,3}}{_IS}\s{{0,3}}[\"'\\]{{0,3}}){_GONE}[^\s\"'\\,;}}\])]{{1,2000}}"),
    (r"\1", rf"(<[\w:-]{{0,30}}{_NAMES}>){_GONE}[^<\n]{{1,2000}}"),
    (r"\1", rf"(--[\w-]{{0,30}}{_NAMES}\s{{1,3}}){_GONE}[^\s-]\S{{0,2000}}"),
    (r"\1", rf"\b((?:password|passphrase)\s+){_GONE}\S*\d\S*"),
    (r"\1", rf"\b(login\s+\S{{1,200}}\s+password\s+){_GONE}\S{{1,2000}}"),
    (r"\1", r"((?:wandb|api|key|login|netrc)[^\n]{0,60}?)(?<![0-9a-fx])[0-9a-f]{40}(?![0-9a-f])"),
    # Email addresses.
    ("", r"(?<![\w.+%-])[\w.+%-]{1,500}(?:@|%40|\\u0040)[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}"),
)
BY_LOOKS = tuple((re.compile(pattern, re.IGNORECASE), kept) for kept, pattern in _ALL)
"""Pairs of a case-insensitive pattern and the part of a match that is kept when the rest is removed."""
HEX = re.compile(r"(?<![0-9A-Za-z])(?:0x)?(?:[0-9A-Fa-f]{32,39}|[0-9A-Fa-f]{41,})(?![0-9A-Za-z])")
"""Keys in hex, with or without 0x. Exactly 40 digits are left: accounts, contracts and commits are public."""
LONG = re.compile(r"[A-Za-z0-9+/_-]{48,}={0,2}")
"""Text that may be a key in base64."""


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
        text = LONG.sub(_without_base64, text)
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
