"""How weights and activations are stored."""
