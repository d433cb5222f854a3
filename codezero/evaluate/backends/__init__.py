"""Where the frozen judge runs: in this process, in a process of its own, or behind a server's HTTP API."""
