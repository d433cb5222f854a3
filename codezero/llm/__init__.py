"""Language models: obtains their weights, loads, samples and scores them. It does not depend on tasks."""
