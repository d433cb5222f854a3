"""Fresh tests: inputs like those of the visible tests that nobody has seen, with the results of a reference."""
