"""The checks of `codezero doctor`, which find what is or would be wrong with a node on this machine."""
