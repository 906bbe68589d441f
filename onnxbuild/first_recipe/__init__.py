"""Write a first recipe, from a model or a callable, or a small whole project: `init`."""
