"""Taking secrets out of text: those that are known, however they are written, and whatever looks like one."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus

REMOVED = "[removed]"
SHORTEST = 6
"""Characters of a form of a secret: what is shorter would be found everywhere."""
_GRAM = 16
"""Characters in a row of a long secret by which a piece of it is recognised, as in a key that is split over lines."""
_REACH = 20_000
"""Characters of a key as a text block, its lines' own starts included."""
_NAMES = (
    r"(?:pass(?:word|phrase|wd|code)?|secret|token|api[_-]?key|private[_-]?key|session[_-]?key|access[_-]?key|"
    r"credentials?|bearer|org[_-]?id|user[_-]?id|otp)"
)
_BEGIN, _END = r"-----BEGIN [^\n-]{0,60}-----", r"-----END [^\n-]{0,60}-----"
_PATTERNS = (
    # Keys as text blocks, also where their lines carry other things, or one of the ends is missing.
    ("", rf"(?s){_BEGIN}(?:(?!-----BEGIN ).){{0,{_REACH}}}?{_END}"),
    ("", rf"(?s){_BEGIN}.{{0,{_REACH}}}"),
    ("", rf"(?s)\A.{{0,{_REACH}}}{_END}"),
    # Addresses with a user, and with a key in their query or path.
    (r"\1", r"\b([a-z][a-z0-9+.-]{1,20}://)[^\s/@\"'<>]{1,500}(?=@)"),
    (r"\1", r"(https?://[^\s?\"'<>]{1,500}\?)[^\s\"'<>#]{1,2000}"),
    (r"\1", r"(https?://[^\s?\"'<>]{1,300}?/)(?=[\w~-]*\d)(?=[\w~-]*[a-z])[\w~-]{16,}"),
    # Tokens by the prefixes of those who issue them.
    ("", r"\b(?:hf|api_org)_(?!(?:endpoint|home|token)\b)[a-z0-9]{6,}"),  # names of variables are not
    ("", r"\b(?:sk|pk|rk)-[a-z0-9_-]{12,}"),
    ("", r"\b(?:gh[pousr]_[a-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{12,}|xox[a-z]-[\w-]{10,}|AKIA[a-z0-9]{12,})"),
    ("", r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"),
    # What stands behind a word for a secret.
    (r"\1", r"\b((?:(?:proxy-)?authorization|(?:set-)?cookie)[\"'\\]{0,3}\s{0,3}[:=])[^\n]{1,4000}"),
    (r"\1", r"\b((?:bearer|basic)\s+)(?=\S*[\d=+/_-])[\w.~+/=-]{6,}"),
    (r"\1", r"((?:mnemonic|seed[ _]phrase|recovery[ _]phrase)\b[^\n]{0,10}?[:= ]\s{0,3})[^\n]{4,400}"),
    (r"\1", rf"({_NAMES}[\"'\\]{{0,3}}\s{{0,3}}[:=]\s{{0,3}}[\"'\\]{{0,3}})(?!\[removed\])[^\s\"'\\,;}}\])]{{1,2000}}"),
    (r"\1", r"\b((?:password|passphrase)\s+)(?!\[removed\])\S*\d\S*"),
    (r"\1", r"((?:key|secret|priv|seed|signer|wallet)[^\n]{0,60}?)(?<![0-9a-f])(?:0x)?[0-9a-f]{64}(?![0-9a-f])"),
    (r"\1", r"((?:wandb|api|key|login|netrc)[^\n]{0,60}?)(?<![0-9a-fx])[0-9a-f]{40}(?![0-9a-f])"),
    ("", r"(?<![0-9a-fx])[0-9a-f]{64}(?![0-9a-f])"),
    ("", r"(?<![\w.+%-])[\w.+%-]{1,500}(?:@|%40|\\u0040)[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}"),
)
"""What of a match is kept before the rest of it is removed, and what is looked for, in either case."""
_REPLACED = tuple((re.compile(pattern, re.IGNORECASE), kept + REMOVED) for kept, pattern in _PATTERNS)
_LONG = re.compile(r"[A-Za-z0-9+/_-]{48,}={0,2}")
_PEER_ID = re.compile(r"Qm[1-9A-HJ-NP-Za-km-z]{44}|12D3Koo[1-9A-HJ-NP-Za-km-z]{45}")


class Redactor:
    """Takes the known secrets and private names, and all that looks like a secret, out of texts."""

    def __init__(self, secrets: Iterable[bytes], names: Mapping[str, str] | None = None) -> None:
        """`names` are words to be replaced, such as the user's, with what takes their place."""
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
        for pattern, replacement in _REPLACED:
            text = pattern.sub(replacement, text)
        text = _LONG.sub(_without_base64, text)
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
