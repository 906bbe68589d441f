"""Pages for people: one self-contained HTML file each, the same bytes for the same contents."""
