"""Differences of models and artifacts: the first one, or all of them, node by node and weight by weight."""
