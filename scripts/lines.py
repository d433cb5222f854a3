"""Counts the lines of codezero/ at commits: of the files, and of their code without comments, docstrings and layout.

python scripts/lines.py e0e6a0d HEAD
"""

from __future__ import annotations

import ast
import subprocess
import sys


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def code_lines(text: str) -> int:
    """Returns the lines of a module as `ast.unparse` writes it, which are those of no formatter, without docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [one for one in body if not _is_text(one)] or [ast.Pass()]  # type: ignore[attr-defined]
    return len(ast.unparse(tree).splitlines())


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def main() -> None:
    for commit in sys.argv[1:] or ["HEAD"]:
        names = [name for name in git("ls-tree", "-r", "--name-only", commit, "codezero").split() if name[-3:] == ".py"]
        texts = [git("show", f"{commit}:{name}") for name in names]
        lines, code = sum(len(text.splitlines()) for text in texts), sum(map(code_lines, texts))
        print(f"{commit}: {len(names)} files, {lines:,} lines, {code:,} of them code")


if __name__ == "__main__":
    main()
