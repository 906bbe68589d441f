"""What is measured of a model, and laid next to it."""
