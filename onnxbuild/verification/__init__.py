"""Check a release: what it says against what it holds, run again, built again."""
