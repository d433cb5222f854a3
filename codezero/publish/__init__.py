"""Publishing the trained model on the Hugging Face hub, beside the training."""
