"""The functions of a node's worker processes, the only ones that parse and interpret untrusted code.

Nothing imports this module; `workers.pool` names it, and each worker process loads it.
"""

from __future__ import annotations

import encodings.unicode_escape  # noqa: F401 - ast.unparse imports it by name, and a worker cannot open files

from codezero.evaluate.jobs import READ_ATTEMPTS
from codezero.evaluate.read_attempts import read_attempts
from codezero.proposer import checks
from codezero.proposer.jobs import CONFIRM_OR_CORRECT, WHY_NOT
from codezero.proposer.reference_tests import confirm_or_correct_tests
from codezero.tasks.testcases import IS_PYTHON, READ_TESTS, is_python, parse_tests
from codezero.verifier.jobs import TRY_CASES
from codezero.verifier.trial import try_cases
from codezero.workers.serve import Jobs

JOBS: Jobs = {
    READ_ATTEMPTS: read_attempts,
    READ_TESTS: parse_tests,
    IS_PYTHON: is_python,
    WHY_NOT: lambda asked: checks.why_not(*asked) or "",
    CONFIRM_OR_CORRECT: confirm_or_correct_tests,
    TRY_CASES: try_cases,
}
