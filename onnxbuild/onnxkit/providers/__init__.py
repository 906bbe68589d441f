"""Whether an execution provider loads, why not, and which nodes ran there."""
