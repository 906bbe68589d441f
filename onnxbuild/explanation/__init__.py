"""Say a recipe in full, as it was understood: `explain`, and what `init` writes."""
