"""What a recipe may ask for: one file each, listed in `catalog`; features never import each other."""
