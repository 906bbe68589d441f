"""Execution providers: which of them load, why the others don't, and which nodes ran on each."""
