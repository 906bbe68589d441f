"""Python wheels that hold a bundle."""
