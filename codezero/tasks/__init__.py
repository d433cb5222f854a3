"""Sources of problems: rows of MBPP, CodeContests and the built-in set become Tasks, mixed and resumable."""
