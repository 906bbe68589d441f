"""Drawings and pages for people: layered graphs, SVG, numbers as text, self-contained HTML."""
