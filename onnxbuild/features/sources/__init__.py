"""Forms of models that a frontend takes besides a callable: `model: {NAME: PATH}`."""
