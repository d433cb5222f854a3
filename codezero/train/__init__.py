"""Learning from scored groups: advantages, the GRPO losses, the optimizer step, and checkpoints."""
