"""The fork server, the steps that it starts, and their results."""
