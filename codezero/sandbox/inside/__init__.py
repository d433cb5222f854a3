"""What runs inside the sandbox's own processes: they import nothing else of codezero and know nothing of it."""
