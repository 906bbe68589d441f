"""Weights and activations in fewer bits."""
