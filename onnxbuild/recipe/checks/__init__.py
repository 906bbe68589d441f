"""What a schema can not say: faults that need the whole recipe."""
