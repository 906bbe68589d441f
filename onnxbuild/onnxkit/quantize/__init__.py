"""Weights and activations in 8 bits and fewer."""
