"""Sections that several features share."""
