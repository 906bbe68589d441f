"""Sensitivity: the loss of each node and block in fewer bits."""
