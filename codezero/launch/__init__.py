"""Starting and supervising nodes: one node, one per GPU, or a whole swarm on one machine, and invitations to it."""
