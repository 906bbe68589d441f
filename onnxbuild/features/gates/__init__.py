"""Gates: what must hold before a model is delivered."""
