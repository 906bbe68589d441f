"""Modes: how weights and activations are stored."""
