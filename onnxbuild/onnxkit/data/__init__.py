"""Feeds: the user's, from files, or dummy ones; checked."""
