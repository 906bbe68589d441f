"""PyTorch operators of the user's: as nodes of a library, or as what the recipe translates them to."""
