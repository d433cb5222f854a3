"""Trackers that get a node's numbers: TensorBoard, Weights & Biases, Prometheus."""
