"""The model that learns: loads it with the judge, solves tasks with it, and answers other threads' questions."""
