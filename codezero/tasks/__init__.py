"""Where problems come from: rows of MBPP, CodeContests and the built-in set become Tasks, mixed and resumable."""
