"""Events as lines for people and as JSON."""
