"""Build again from nothing in other surroundings; where the two part, find the cause."""
