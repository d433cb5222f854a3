"""Where a node's numbers go beside its own files: TensorBoard, Weights & Biases, Prometheus."""
