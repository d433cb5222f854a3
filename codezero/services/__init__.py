"""Optional services of the network: the judge service and the prediction market."""
