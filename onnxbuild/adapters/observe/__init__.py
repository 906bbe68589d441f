"""What a step reads, lists, looks for and imports."""
