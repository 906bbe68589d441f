"""What must hold before a model is delivered."""
