"""The model that learns: loading it with the judge, solving tasks with it, asking it."""
