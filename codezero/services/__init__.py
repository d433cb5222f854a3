"""Services that a node uses if told to: the judge service and the prediction market."""
