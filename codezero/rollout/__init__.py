"""Attempts at tasks: a Task becomes a RolloutGroup."""
