"""What a person sees of a node: the console, the log file and the round reports."""
