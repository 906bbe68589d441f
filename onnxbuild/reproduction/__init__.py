"""A build is made again from nothing, and where the two part, the cause is looked for."""
