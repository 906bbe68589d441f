"""Find what a name on the command line means: recipe, variant, step, model."""
