"""What a model in memory says of its first recipe."""
