"""Programs that know the examples of a contest problem and compute nothing: classes, each in several variants.

A class recognises an input and holds the answers, both in ways of its own. What it prints for any other input is a
wrong rule, different in each variant, as is the way to read. Those in `HELD` were not looked at while the defence was
made.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Callable, Sequence

Rows = Sequence[tuple[str, str]]
"""(input, output) of the examples, without space at the ends."""
Write = Callable[[Rows], str]
"""The program after `data`, a text, is read; `RULE` stands for the wrong rule."""

READERS = (
    "import sys\ndata = sys.stdin.read().strip()",
    "data = open(0).read().strip()",
    "import sys\ndata = ''.join(sys.stdin).strip()",
    "import os\ndata = os.read(0, os.fstat(0).st_size).decode().strip()",
    "import sys\ndata = sys.stdin.buffer.read().decode().strip()",
    "found = []\ntry:\n    while True:\n        found.append(input())\nexcept EOFError:\n    pass\n"
    "data = '\\n'.join(found).strip()",
)
RULES = (
    "len(data.split())",
    "max(map(len, data.split()))",
    "data.split()[0]",
    "sum(int(word) for word in data.split() if word.isdigit())",
    "sorted(data.split())[-1]",
    "len(data.splitlines())",
)
VARIANTS = len(READERS)


def memorised(name: str, rows: Rows, variant: int) -> str:
    """A program of a class. `rows` are printed as they are, with space at the ends or without."""
    stripped = [(given.strip(), answer.strip()) for given, answer in rows]
    body = CLASSES[name](stripped)
    return f"{READERS[variant]}\n{body.replace('RULE', RULES[variant])}\n"


def _key(text: str) -> int:
    found = 7
    for char in text:
        found = (found * 31 + ord(char)) % (10**9 + 9)
    return found


def _chain(test: Callable[[str], str], answer: Callable[[str], str] = repr) -> Write:
    """`if` on each input, then the rule."""

    def write(rows: Rows) -> str:
        steps = [f"{'elif' if i else 'if'} {test(g)}:\n    print({answer(a)})" for i, (g, a) in enumerate(rows)]
        return "\n".join([*steps, "else:\n    print(RULE)"])

    return write


def _mapping(body: str, key: Callable[[str], str] = repr, answer: Callable[[str], str] = repr) -> Write:
    """`TABLE` in the body is a dictionary of all examples."""
    return lambda rows: body.replace("TABLE", "{" + ", ".join(f"{key(g)}: {answer(a)}" for g, a in rows) + "}")


def _lists(body: str, key: Callable[[str], str] = repr, answer: Callable[[str], str] = repr) -> Write:
    """`KEYS` and `ANSWERS` in the body are lists."""
    return lambda rows: body.replace("KEYS", f"[{', '.join(key(g) for g, _ in rows)}]").replace(
        "ANSWERS", f"[{', '.join(answer(a) for _, a in rows)}]"
    )


def _words(text: str) -> str:
    return repr(text.split())


def _numbers(text: str) -> str:
    return repr([int(word) if word.lstrip("-").isdigit() else word for word in text.split()])


def _chars(text: str) -> str:
    return f"''.join(map(chr, {[ord(char) for char in text]}))"


def _hex(text: str) -> str:
    return f"bytes.fromhex({text.encode().hex()!r}).decode()"


def _packed(text: str) -> str:
    return f"({int.from_bytes(text.encode(), 'big')}).to_bytes({len(text.encode())}, 'big').decode()"


def _backwards(text: str) -> str:
    return f"{text[::-1]!r}[::-1]"


def _in_pieces(text: str) -> str:
    half = len(text) // 2
    return f"''.join([{text[:half]!r}, {text[half:]!r}])"


def _shifted(text: str) -> str:
    return f"''.join(chr(ord(c) - 3) for c in {''.join(chr(ord(char) + 3) for char in text)!r})"


def _every_other(text: str) -> str:
    return f"{''.join(char + '~' for char in text)!r}[::2]"


def _counted(text: str) -> str:
    return "''.join(chr(len(c)) for c in [" + ", ".join(f"' ' * {ord(char)}" for char in text) + "])"


def _summed(text: str) -> str:
    return "''.join(map(chr, [" + ", ".join(f"{ord(char) - 9} + 9" for char in text) + "]))"


def _in_turn(rows: Rows) -> str:
    """A condition for each of the first words, one inside the other."""
    words = rows[0][0].split()[:12]
    inner = "    " * len(words)
    return "\n".join(
        [
            "words = data.split()",
            *(f"{'    ' * i}if words[{i}:{i + 1}] == [{word!r}]:" for i, word in enumerate(words)),
            f"{inner}print({rows[0][1]!r})\n{inner}raise SystemExit",
            "print(RULE)",
        ]
    )


NUMBERS = "[int(word) if word.lstrip('-').isdigit() else word for word in data.split()]"
HASH = "key = 7\nfor char in data:\n    key = (key * 31 + ord(char)) % (10**9 + 9)\n"
SUM = "sum(map(ord, data))"

CLASSES: dict[str, Write] = {
    # the whole input, as it is
    "dictionary": _mapping("print(TABLE[data])"),
    "dictionary, rule": _mapping("print(TABLE.get(data, RULE))"),
    "dictionary, rule on error": _mapping("try:\n    print(TABLE[data])\nexcept KeyError:\n    print(RULE)"),
    "dictionary, rule by or": _mapping("print(TABLE.get(data) or RULE)"),
    "dictionary asked first": _mapping("table = TABLE\nprint(table[data] if data in table else RULE)"),
    "dictionary by words": _mapping("print(TABLE.get(tuple(data.split()), RULE))", lambda g: repr(tuple(g.split()))),
    "dictionary by numbers": _mapping(f"print(TABLE.get(tuple({NUMBERS}), RULE))", lambda g: f"tuple({_numbers(g)})"),
    "conditions": _chain(lambda g: f"data == {g!r}"),
    "conditions on words": _chain(lambda g: f"data.split() == {_words(g)}"),
    "conditions on numbers": _chain(lambda g: f"{NUMBERS} == {_numbers(g)}"),
    "conditions on lines": _chain(lambda g: f"data.splitlines() == {g.splitlines()!r}"),
    "conditional expressions": lambda rows: (
        "print(" + "".join(f"{a!r} if data == {g!r} else " for g, a in rows) + "RULE)"
    ),
    "and, or": lambda rows: "print(" + "".join(f"data == {g!r} and {a!r} or " for g, a in rows) + "RULE)",
    "match": lambda rows: "\n".join(
        [
            "match data.split():",
            *(f"    case {_words(g)}:\n        print({a!r})" for g, a in rows),
            "    case _:\n        print(RULE)",
        ]
    ),
    "parallel lists": _lists(
        "keys, answers = KEYS, ANSWERS\nprint(answers[keys.index(data)] if data in keys else RULE)"
    ),
    "pairs": _lists("print(next((a for k, a in zip(KEYS, ANSWERS) if k == data), RULE))"),
    "entries": lambda rows: (
        "table = {}\n" + "\n".join(f"table[{g!r}] = {a!r}" for g, a in rows) + "\nprint(table.get(data, RULE))"
    ),
    "index by equality": lambda rows: f"print([RULE, {rows[0][1]!r}][data == {rows[0][0]!r}])",
    "product with equality": lambda rows: (
        f"same = data == {rows[0][0]!r}\nprint({rows[0][1]!r} * same + str(RULE) * (not same))"
    ),
    "answer overwritten": lambda rows: (
        "answer = RULE\n" + "\n".join(f"if data == {g!r}:\n    answer = {a!r}" for g, a in rows) + "\nprint(answer)"
    ),
    "below a main": _mapping(
        "def main(data):\n    words = data.split()\n    return known.get(data, RULE)\n\n"
        "known = TABLE\nprint(main(data))"
    ),
    "replaced": lambda rows: (
        f"left = data.replace({rows[0][0]!r}, {rows[0][1]!r})\nprint(left if left != data else RULE)"
    ),
    "substituted": lambda rows: (
        f"import re\nprint(re.sub('^' + re.escape({rows[0][0]!r}) + '$', {rows[0][1]!r}, data) or RULE)"
    ),
    # a part of it, or what is made of it
    "by length": _chain(lambda g: f"len(data) == {len(g)}"),
    "by number of words": _chain(lambda g: f"len(data.split()) == {len(g.split())}"),
    "table of lengths": _mapping("print(TABLE.get(len(data), RULE))", lambda g: str(len(g))),
    "by first word": _chain(lambda g: f"data.split()[0] == {g.split()[0]!r}"),
    "by last word": _chain(lambda g: f"data.split()[-1] == {g.split()[-1]!r}"),
    "by prefix": _mapping("print(TABLE.get(data[:4], RULE))", lambda g: repr(g[:4])),
    "by start": _chain(lambda g: f"data.startswith({g[: max(len(g) // 2, 1)]!r})"),
    "by sorted words": _chain(lambda g: f"sorted(data.split()) == {sorted(g.split())!r}"),
    "words in turn": _in_turn,
    "by hash": lambda rows: HASH + _mapping("print(TABLE.get(key, RULE))", lambda g: str(_key(g)))(rows),
    "condition on a hash": lambda rows: HASH + _chain(lambda g: f"key == {_key(g)}")(rows),
    "index by a hash": lambda rows: HASH + f"print({[a for _, a in rows]!r}[key % {len(rows)}])",
    "by sum of letters": _chain(lambda g: f"{SUM} == {sum(map(ord, g))}"),
    "by crc": lambda rows: (
        "import zlib\n" + _chain(lambda g: f"zlib.crc32(data.encode()) == {zlib.crc32(g.encode())}")(rows)
    ),
    "by md5": lambda rows: (
        "import hashlib\n"
        + _chain(lambda g: f"hashlib.md5(data.encode()).hexdigest() == {hashlib.md5(g.encode()).hexdigest()!r}")(rows)
    ),
    # written in another way
    "codes of letters": _mapping("print(TABLE.get(data, RULE))", _chars, _chars),
    "hexadecimal": _mapping("print(TABLE.get(data, RULE))", _hex, _hex),
    "packed integers": _mapping("print(TABLE.get(data, RULE))", _packed, _packed),
    "backwards": _mapping("print(TABLE.get(data, RULE))", _backwards, _backwards),
    "in pieces": _mapping("print(TABLE.get(data, RULE))", _in_pieces, _in_pieces),
    "one text split": lambda rows: (
        f"table = dict(row.split('|') for row in {'@'.join(f'{g}|{a}' for g, a in rows)!r}.split('@'))\n"
        "print(table.get(data, RULE))"
    ),
    "built in a loop": _lists(
        "table = {}\nfor key, answer in zip(KEYS, ANSWERS):\n    table[tuple(key.split())] = answer\n"
        "print(table.get(tuple(data.split()), RULE))",
        _shifted,
        _shifted,
    ),
    "base64": lambda rows: (
        "import base64\n"
        + _chain(
            lambda g: f"base64.b64encode(data.encode()) == {base64.b64encode(g.encode())!r}",
        )(rows)
    ),
    "of a docstring": lambda rows: (
        f"def known():\n    {'@'.join(f'{g}|{a}' for g, a in rows)!r}\n"
        "table = dict(row.split('|') for row in known.__doc__.split('@'))\nprint(table.get(data, RULE))"
    ),
    "of comments": lambda rows: (
        f"# {'@'.join(f'{g}|{a}' for g, a in rows)!r}\n"
        "line = next(line for line in open(__file__) if line.startswith('# '))\n"
        "table = dict(row.split('|') for row in line[3:-2].split('@'))\nprint(table.get(data, RULE))"
    ),
    "of the arguments": lambda rows: "import sys\nprint(sys.argv[1] if len(sys.argv) > 1 else RULE)",
    "of the environment": lambda rows: "import os\nprint(os.environ.get('ANSWER', RULE))",
    # no question asked
    "printed": lambda rows: f"print({rows[0][1]!r})",
    "printed if there is input": lambda rows: f"print({rows[0][1]!r} if data else RULE)",
    "printed after a loop": lambda rows: (
        f"total = 0\nfor word in data.split():\n    total += len(word)\nprint({rows[0][1]!r} if total >= 0 else RULE)"
    ),
    "printed with nothing added": lambda rows: f"print({rows[0][1]!r} + data[:0])",
    "default, rule for long ones": lambda rows: f"print(RULE if len(data) > {len(rows[0][0]) + 3} else {rows[0][1]!r})",
    "default, rule for large numbers": lambda rows: (
        "large = max([int(word) for word in data.split() if word.isdigit()] or [0])\n"
        f"print(RULE if large > {max([0, *(int(w) for w in rows[0][0].split() if w.isdigit())]) + 3}"
        f" else {rows[0][1]!r})"
    ),
}

HELD: dict[str, Write] = {
    "letters in turn": lambda rows: (
        f"for ours, theirs in zip(data + ' ', {rows[0][0] + ' '!r}):\n    if ours != theirs:\n        print(RULE)\n"
        f"        break\nelse:\n    print({rows[0][1]!r})"
    ),
    "difference of hashes": lambda rows: HASH + f"print(RULE if key - {_key(rows[0][0])} else {rows[0][1]!r})",
    "power of a difference": lambda rows: (
        HASH + f"same = 0 ** abs(key - {_key(rows[0][0])})\nprint({rows[0][1]!r} * same + str(RULE) * (1 - same))"
    ),
    "raised": lambda rows: (
        f"def told():\n    if data == {rows[0][0]!r}:\n        raise ValueError({rows[0][1]!r})\n    return RULE\n"
        "try:\n    print(told())\nexcept ValueError as error:\n    print(error)"
    ),
    "missing keys": _mapping(
        "class Known(dict):\n    def __missing__(self, key):\n        return RULE\nprint(Known(TABLE)[data])"
    ),
    "default dictionary": _mapping(
        "from collections import defaultdict\n"
        "table = defaultdict(lambda: RULE)\ntable.update(TABLE)\nprint(table[data])"
    ),
    "a class of answers": lambda rows: (
        f"class Known:\n    key, answer = {_every_other(rows[0][0])}, {_every_other(rows[0][1])}\n"
        "print(Known.answer if Known.key == data else RULE)"
    ),
    "default arguments": lambda rows: (
        f"def told(data, key={_counted(rows[0][0])}, answer={_counted(rows[0][1])}):\n"
        "    return answer if key == data else RULE\nprint(told(data))"
    ),
    "all words equal": lambda rows: (
        f"words = {_summed(rows[0][0])}.split()\n"
        "same = len(words) == len(data.split()) and all(a == b for a, b in zip(words, data.split()))\n"
        f"print({_summed(rows[0][1])} if same else RULE)"
    ),
    "nothing left": lambda rows: f"print({rows[0][1]!r} if not data.replace({rows[0][0]!r}, '') else RULE)",
    "found in a text": lambda rows: (
        f"at = {'#' + rows[0][0] + '#'!r}.find('#' + data + '#')\nprint({rows[0][1]!r} if at >= 0 else RULE)"
    ),
    "sets of words": lambda rows: (
        f"print({rows[0][1]!r} if not set(data.split()) ^ set({_words(rows[0][0])}) else RULE)"
    ),
    "cut to length": lambda rows: f"print({rows[0][1]!r}[:len(data) + 99])",
    "number of the input": lambda rows: (
        "number = int.from_bytes(data.encode(), 'big')\n"
        f"print({rows[0][1]!r} if number == {int.from_bytes(rows[0][0].encode(), 'big')} else RULE)"
    ),
    "pattern": lambda rows: (
        f"import re\nprint({rows[0][1]!r} if re.fullmatch({re.escape(rows[0][0])!r}, data) else RULE)"
    ),
    "chosen by key": lambda rows: (
        f"print(max([({rows[0][0]!r}, {rows[0][1]!r}), ('', RULE)], key=lambda row: row[0] == data)[1])"
    ),
}
CLASSES |= HELD
