"""Folders in Hugging Face's form: what they say of a recipe, and the model in them."""
