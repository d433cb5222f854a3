"""What programs come to is what CPython makes of them. The programs are ours, so that the test may execute them."""

import contextlib
import io
import textwrap
from pathlib import Path

import pytest

from codezero.evaluate.dryrun import dry_run
from codezero.tasks.testcases import TestSuite
from codezero.types import CaseOutcome

PARTS = (Path(__file__).parent / "programs.txt").read_text(encoding="utf-8").split("\n== ")[1:]
PROGRAMS = dict(part.split("\n", 1) for part in PARTS)


def executed(code: str) -> tuple[str, str]:
    """('value', repr) or ('error', name of the exception) of f()."""
    names: dict = {"__name__": "__main__"}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, "program", "exec", dont_inherit=True), names)
            return "value", repr(names["f"]())
    except Exception as error:
        return "error", type(error).__name__


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_dry_run_agrees_with_cpython(name):
    code = "def f():\n" + textwrap.indent(PROGRAMS[name].strip("\n"), "    ")
    kind, expected = executed(code)
    suite = TestSuite(statements=(f"assert repr(f()) == {expected!r}",))
    result = dry_run(code, suite)[0]
    if kind == "value":
        assert (result.outcome, result.reason) == (CaseOutcome.PASS, "")
    else:
        assert result.outcome is CaseOutcome.FAIL
        assert result.reason.split(":")[0] == expected
