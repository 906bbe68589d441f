"""Drafts of first recipes, from models in memory."""
