"""Frameworks in an environment of their own: what runs there, and what of their files is read here."""
