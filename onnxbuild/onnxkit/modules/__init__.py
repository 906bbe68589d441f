"""PyTorch modules, from callables and from files."""
