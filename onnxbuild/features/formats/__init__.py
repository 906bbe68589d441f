"""Forms of the model that the user's framework runs."""
