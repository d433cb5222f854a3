"""Every warning in the code says what to do, or that nothing has to be done."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parent.parent.parent.parent / "codezero"
ADVICE = (
    *("nothing has to be done", "check ", "give ", "set the clock", "set this machine", "free space"),
    *("stop that one", "correct it", "keep it", "copy it", "runs nothing", "the next start asks again"),
    *("install a torch", "is not affected", "training is not affected", "begins a new run"),
)
"""What the sentences have that tell: things to do, or why there is nothing to do."""


def literals(tree):
    """Line and text of every warning and error that is logged with a text of its own; `%s` alone passes an error on,
    and those say what to do by themselves."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner = node.func.value
        if not (isinstance(owner, ast.Name) and owner.id == "logger" and node.func.attr in ("warning", "error")):
            continue
        text = node.args[0]
        if isinstance(text, ast.Constant) and text.value.replace("%s", "").strip(":; "):
            yield node.lineno, text.value


def unadvised(source):
    return [(line, text) for line, text in literals(ast.parse(source)) if not any(a in text.lower() for a in ADVICE)]


def test_a_warning_says_what_to_do():
    found = {str(path.relative_to(PACKAGE)): unadvised(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}
    bare = {name: texts for name, texts in found.items() if texts}
    assert not bare, f"say what to do, or 'Nothing has to be done' and why: {bare}"


def test_a_bare_warning_would_be_found():
    assert unadvised('logger.warning("disk is odd: %s", error)') == [(1, "disk is odd: %s")]
    assert unadvised('logger.warning("%s", error)') == []
    assert unadvised('logger.warning("disk is odd: %s. " "Nothing has to be done", error)') == []
