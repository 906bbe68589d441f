"""Differences of outputs: metrics, tolerances, verdicts."""
