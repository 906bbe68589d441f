"""What a run leaves for CI: JUnit XML, GitHub's annotations and job summary, keys for its cache."""
