"""Each prompt beside the parser of its answer."""
