"""Pipelines: one callable over several models, whatever runs these."""
