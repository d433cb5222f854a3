"""The dry run: solutions followed by an interpreter of a pure subset of Python, never executed."""

from codezero.evaluate.dryrun.budget import Budget, budget_of, share_of, until
from codezero.evaluate.dryrun.run import dry_run, printed

__all__ = ["Budget", "budget_of", "dry_run", "printed", "share_of", "until"]
