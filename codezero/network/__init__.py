"""Other nodes: what is shared with them and what comes back."""
