"""Publishes the trained model on the Hugging Face hub while training continues."""
