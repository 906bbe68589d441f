"""Plug-ins: found, imported, checked, and handed to the catalog."""
