"""Writes problems that the swarm can solve about half of the time: writing, checks, levels, feedback, learning."""
