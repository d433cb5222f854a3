"""Test cases that a model writes: asking for them, trying them on solutions, and choosing a solution by them."""
