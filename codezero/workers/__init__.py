"""Worker processes: text of strangers is parsed and walked there, and never in the process that has the keys."""

from codezero.workers.job import Cause, Death, Job
from codezero.workers.pool import Workers

__all__ = ["Cause", "Death", "Job", "Workers"]
