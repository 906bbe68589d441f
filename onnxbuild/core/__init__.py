"""The nouns of a build; standard library only, no clock, no environment."""
