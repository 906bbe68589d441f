"""What is installed: interpreters, environments, distributions, and their digests."""
