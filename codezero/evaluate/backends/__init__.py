"""The backends that run the frozen judge: in this process, in one of its own, or behind a server's HTTP API."""
