"""Packages for phones: a model in ORT format, what it needs and takes, and sources that call it."""
