"""Samples of latency and what follows from them."""
