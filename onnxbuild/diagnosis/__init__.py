"""Where a variant goes wrong: the first step, the first nodes, and what to leave out."""
