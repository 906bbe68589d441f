"""The store, the folders delivered from it, and their upkeep."""
