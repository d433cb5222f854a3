"""A report of a run for people: one HTML file that needs nothing else, and one picture."""
