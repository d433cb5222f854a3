"""Measures a model by ground truth: its solutions to public problem sets are executed in the sandbox and counted."""
