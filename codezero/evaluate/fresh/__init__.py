"""Fresh tests: new inputs like those of the visible tests, with the results of a reference solution."""
