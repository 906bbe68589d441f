"""Archives of Keras 3: what they say of a recipe, and the model in them as a PyTorch module."""
