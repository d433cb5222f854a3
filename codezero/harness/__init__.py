"""The ground-truth bench: a model's solutions to public problem sets, executed in the sandbox and counted."""
