"""Expansion of features: the graph in the making, and the steps that several of them share."""
