"""The web dashboard: pages about nodes of this machine, read from what they leave on disk. It changes nothing."""
