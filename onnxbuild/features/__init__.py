"""Features that a recipe may ask for: one file each, listed in `catalog`; plug-ins bring more; features never import each other."""
