"""Builds from Python and notebooks: `run`, and the build, variants and metrics that it returns."""
