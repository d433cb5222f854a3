"""The exchange with other nodes: rollouts, proposals and feedback."""
