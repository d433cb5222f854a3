"""Language models: where weights come from, how they are loaded, sampled and scored. Knows no tasks."""
