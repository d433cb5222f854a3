"""A whole swarm on one machine: its bootnode and nodes as processes kept running, and what invites others to it."""
