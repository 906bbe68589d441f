"""What a bundle holds besides the model."""
