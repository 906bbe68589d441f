"""What a callable returned or a file holds, as a PyTorch module."""
