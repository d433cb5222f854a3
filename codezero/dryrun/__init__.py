"""The dry run: solutions walked through by an interpreter of a pure subset of Python, never executed."""

from codezero.dryrun.budget import Budget
from codezero.dryrun.run import dry_run, printed

__all__ = ["Budget", "dry_run", "printed"]
