"""The prompts, each beside the parser of its answer."""
