"""Sources of problems: rows of MBPP, CodeContests and the built-in set become Tasks, in a mixture that can be
resumed."""
