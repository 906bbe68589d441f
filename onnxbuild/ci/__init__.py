"""Outputs of a run for CI: JUnit XML, GitHub's annotations and job summary, keys for its cache."""
