"""Locks: the inputs and outputs of a build as a file to review and to commit; the difference of two."""
