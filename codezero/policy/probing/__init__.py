"""Measuring a solver while it learns: probes with fixed problems, and what follows from their results."""
