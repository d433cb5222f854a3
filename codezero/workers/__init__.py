"""Worker processes: untrusted text is parsed in them, and never in the process that has the node's keys."""

from codezero.workers.job import Cause, Death, Job
from codezero.workers.pool import Workers

__all__ = ["Cause", "Death", "Job", "Workers"]
