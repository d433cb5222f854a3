"""Running untrusted Python solutions against their tests, in processes of their own that can reach nothing else."""
