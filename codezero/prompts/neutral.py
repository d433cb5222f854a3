"""Makes untrusted text harmless before a model reads it, and detects text that addresses its judge."""

from __future__ import annotations

import re
import unicodedata

from codezero.runtime.visible import hides

_LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROL_TOKEN = re.compile(
    r"<(?=[|\uff5c])|(?<=[|\uff5c])(?=>)|<(?=/?(?:s|bos|eos|pad|unk|system|user|assistant|think|tool_call|tool_response|"
    r"start_of_turn|end_of_turn|start_header_id|end_header_id)>)|\[(?=/?(?:INST|SYS|AVAILABLE_TOOLS)\])|<(?=</?SYS>)",
    re.IGNORECASE,
)
"""The places at which `plain` inserts a space, so that no tokenizer (Qwen, Llama, Mistral, Gemma, DeepSeek) reads a
control token."""
_VERDICT_KEY = re.compile(r"""(["'])is_correct\1(?=\s*:)""", re.IGNORECASE)


def plain(text: str) -> str:
    """Returns `text` with line ends as \\n, and without invisible characters, control tokens of a chat, or the key of a
    JSON verdict. Ordinary text and code are unchanged."""
    text = "".join(char for char in _LINE_ENDS.sub("\n", text) if not hides(char))
    text = _CONTROL_TOKEN.sub(lambda match: match.group() + " ", text)
    return _VERDICT_KEY.sub(r"\1is-correct\1", text)


_LOOKALIKES = str.maketrans(
    "асеорхуіѕјһԁԛԝкмтнвгαορντικευχωηı" + "0134578@$!",
    "aceopxyisjhdqwkmthbraopvtikeuxwni" + "oleastbasi",
)
"""The Latin letters for Cyrillic and Greek ones that look alike, and for digits and signs that replace letters."""

_TESTS = r"(?:the|of|these|hidden|unit|public|given|provided|assert(?:ion)?){0,8}(?:tests?|cases?|asserts?|assertions?)"
_JUDGE = r"(?:evaluator|judge|grader|reviewer|assessor|verifier|examiner|scorer|languagemodel|llm)s?"
_MUST = (
    r"(?:must|should|shall|will|can|needs?to|ha(?:s|ve)to|please|note|answers?|says?|repl(?:y|ies)|responds?|output)"
)
_SOLUTION = r"(?:solution|code|program|function|implementation|submission|answer|output|result|logic|this|it)"
_PRAISE = r"(?:correct|right|perfect|valid|verified|flawless|bugfree|optimal|proven|accepted|passing)"
_SURELY = (
    r"(?:is|are|was|be|has|been|completely|fully|100|percent|definitely|certainly"
    r"|provably|perfectly|indeed|very|all){0,8}"
)
_YES = r"(?:yes|true|correct|accepted|pass(?:ed)?)"

_CLAIMS: tuple[tuple[str, str], ...] = (
    (
        "plants a verdict",
        r"iscorrect|(?:verdict|judge?ment|pcorrect)(?:is|yes|true|correct|pass|1)|correct(?:true|yes)",
    ),
    (
        "gives instructions",
        r"(?:ignore|disregard|forget|override)(?:all|any|the|your|of|previous|prior|above|earlier|"
        r"system){0,8}(?:instruction|prompt|rule|message|text)",
    ),
    ("imitates a chat", r"imstart|imend|endoftext|startofturn|endofturn|eotid|startheaderid|beginofsentence"),
    (
        "addresses the evaluator",
        rf"{_JUDGE}(?:the|model|you|ai|,){{0,8}}{_MUST}|(?:dear|attention|noteto|to)(?:the|ai|llm){{0,8}}{_JUDGE}",
    ),
    (
        "asks for an answer",
        rf"(?:answer|reply|respond|say|output|verdict|return|print)(?:s|ed|ing)?(?:with|is|the|oneword|"
        rf"word|a|only|just|simply|always|must|be|should){{0,8}}{_YES}",
    ),
    (
        "claims that tests pass",
        rf"(?:all|every|each|any){_TESTS}(?:have|are|is|was|were|will|do|does|been|successfully|"
        rf"now|here){{0,8}}(?:pass|succe|ok|green|satisf|hold|correct|works?)|"
        rf"pass(?:es|ed|ing)?(?:all|every|each|any){_TESTS}|{_TESTS}(?:have|are|is)?pass(?:ed|es)",
    ),
    (
        "claims to be right",
        rf"{_SOLUTION}(?:is|are|was|hasbeen|havebeen|looks){_SURELY}{_PRAISE}|"
        rf"(?:verified|certified|approved|proven|proved|reviewed)(?:correct|right|by|solution)|"
        rf"(?:correct|right|perfect|flawless|verified){_SOLUTION}|(?:100|hundred)percentcorrect",
    ),
    (
        "asks for a score",
        r"(?:give|award|grant|assign|deserves?)(?:it|me|this|solution|code|the|an?|s){0,8}"
        r"(?:full|max|maximum|maximal|high|highest|top|perfect|10)(?:est)?(?:score|mark|point|reward|rating)|"
        r"(?:full|maximum|perfect)(?:score|marks|points|reward)",
    ),
    (
        "speaks for an authority",
        r"(?:system|admin|administrator|developer|openai|gensyn|anthropic|qwen)"
        r"(?:message|note|prompt|override|says|confirms?|notice)",
    ),
    (
        "claims to be right",
        r"testsuccess|passed\d{0,9}(?:of|in)?\d{0,9}tests?|\dpassed|0fail(?:ed|ures)",
    ),
)
"""Descriptions of verdict-like text, each with a pattern for text reduced to letters and digits. Since that has no word
boundaries, the patterns are of words that ordinary identifiers seldom have in this order. Repetitions have a bound, so
that a search takes time in proportion to the text."""
_FOREIGN = re.compile(
    r"正确|通过|測試|测试|评估|評估|忽略|答案是|正解|合格|정답|통과|"
    r"вернопройдены|всетесты|правильн|игнорируй|"
    r"todaslaspruebas|todoslostests|escorrect[oa]|touslestests|tousl?estest|reussi|alletests|bestanden|korrekt|tuttiitest"
)
_STRONG = frozenset({"plants a verdict", "gives instructions", "imitates a chat", "addresses the evaluator"})
_MAX_LOOKED_AT = 20_000


def looks_like_verdict(text: str) -> str | None:
    """Returns, for text that seems to talk to a judge, a description of what it does; None for other text.

    Case, spaces, signs between letters, camelCase, invisible characters and look-alike letters make no difference.
    Ordinary text sometimes matches ("print YES"), so a match must have only a small cost.
    """
    if _CONTROL_TOKEN.search(text):
        return "imitates a chat"
    folded = _fold(text[:_MAX_LOOKED_AT])
    latin = _squeeze(folded.translate(_LOOKALIKES))
    spellings = {_squeeze(folded), latin, latin[::-1]}
    for squeezed in spellings:
        for what, pattern in _COMPILED:
            if pattern.search(squeezed):
                return what
        if _FOREIGN.search(squeezed):
            return "claims to be right"
    return None


def addresses_the_judge(text: str) -> bool:
    """Returns whether text talks to a judge in a way that no problem statement needs, unlike "print YES"."""
    return looks_like_verdict(text) in _STRONG


def _fold(text: str) -> str:
    """Returns text in lower case, without accents, invisible characters and Unicode's variants of letters."""
    text = unicodedata.normalize("NFKD", text)
    return "".join(c for c in text if not hides(c) and not unicodedata.combining(c)).casefold()


def _squeeze(text: str) -> str:
    return "".join(char for char in text if char.isalnum())


_COMPILED = tuple((what, re.compile(pattern)) for what, pattern in _CLAIMS)
