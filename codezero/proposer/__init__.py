"""Writing problems at the edge of what the swarm can do: write, check, choose the level, hear solvers, learn."""
