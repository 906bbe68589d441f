"""Node packages: what they hold, and how they are run."""
