"""A node's identity: its key, the peer id and name that follow from it, and its backup."""
