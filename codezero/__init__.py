"""A node of a peer-to-peer swarm in which language models learn to code together."""

__version__ = "0.1.0"
