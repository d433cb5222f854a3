"""Prints a random sample of the docstrings and messages of codezero/ at a commit, to be judged by a reader new to it.

python scripts/sample_prose.py HEAD 7
"""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from collections.abc import Iterator

DOCSTRINGS, MESSAGES = 60, 30
PRINTING = frozenset({"debug", "info", "warning", "error", "exception", "critical", "print", "echo"})
MANY_WORDS = 4  # Fewer are a name or a key, not a sentence


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields line and text of each string that stands alone as a statement, those below dataclass fields included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields line and text of each literal that is given to a raised exception, a logger or a printing function."""
    for node in ast.walk(tree):
        call = node.exc if isinstance(node, ast.Raise) else node
        if isinstance(call, ast.Call) and (isinstance(node, ast.Raise) or _name(call.func) in PRINTING):
            values = [*call.args, *(keyword.value for keyword in call.keywords)]
            texts = [literal(value) for value in values if isinstance(value, ast.Constant | ast.JoinedStr)]
            if len((text := " | ".join(filter(None, texts))).split()) >= MANY_WORDS:
                yield node.lineno, text


def literal(value: ast.Constant | ast.JoinedStr) -> str:
    """Returns a string literal as it is, an f-string with its expressions in braces, and otherwise an empty string."""
    if isinstance(value, ast.Constant):
        return value.value if isinstance(value.value, str) else ""
    parts = (f"{{{ast.unparse(one.value)}}}" if isinstance(one, ast.FormattedValue) else one for one in value.values)
    return "".join(part if isinstance(part, str) else literal(part) for part in parts)  # type: ignore[arg-type]


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def main() -> None:
    commit, seed = sys.argv[1], int(sys.argv[2])
    names = sorted(n for n in git("ls-tree", "-r", "--name-only", commit, "codezero").split() if n.endswith(".py"))
    trees = {name: ast.parse(git("show", f"{commit}:{name}")) for name in names}
    rng = random.Random(seed)
    for kind, find, count in (("docstrings", docstrings, DOCSTRINGS), ("messages", messages, MESSAGES)):
        found = [(f"{name}:{line}", text) for name, tree in trees.items() for line, text in find(tree)]
        print(f"{count} of {len(found)} {kind} at {commit}, seed {seed}\n")
        for place, text in rng.sample(found, count):
            print(place, *(f"    {line.strip()}" for line in text.strip().splitlines()), sep="\n")


if __name__ == "__main__":
    main()
