"""Measure variants and models from elsewhere now."""
