"""Recognises copies of a program whose names, comments, layout or dead code were changed; runs in worker processes."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Collection

from codezero.evaluate.jobs import ProgramPrint
from codezero.evaluate.normalise import reachable, stripped

_TOKEN = re.compile(r"\w+|[^\w\s]")
_NAME = "_"


def program_of(code: str, wanted: Collection[str] | None) -> ProgramPrint | None:
    """Returns a program's fingerprint, the same for its copies; None if it does not parse. `wanted` is as in
    `normalise.reachable`.

    All names count as equal, since renaming is easy; imports and what `reachable` drops do not count.
    """
    try:
        tree = reachable(stripped(code), wanted)
        for node in ast.walk(tree):
            _blind(node)
        text = ast.unparse(tree)
    except ValueError:
        return None
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
    return ProgramPrint(digest=digest, num_tokens=len(_TOKEN.findall(text)))


def _blind(node: ast.AST) -> None:
    """Gives all names of a node the same one, and drops the imports in it."""
    for field, value in ast.iter_fields(node):
        if isinstance(value, str) and not isinstance(node, ast.Constant):
            setattr(node, field, _NAME)
        elif isinstance(value, list):
            kept = [item for item in value if not isinstance(item, ast.Import | ast.ImportFrom)]
            value[:] = [_NAME if isinstance(item, str) else item for item in kept]
