"""Find where a variant goes wrong: its steps, its nodes, and remedies tried as ordinary builds."""
