"""The nouns of the build: standard library only; no I/O, no clock, no environment."""
