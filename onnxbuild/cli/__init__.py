"""One file a verb; the only place that prints, picks exit codes and catches what is left."""
