"""Sizes for people."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(size_bytes: int) -> str:
    """Return a size in the unit that says most: `1.5 MiB`."""
    step = min((max(size_bytes, 1).bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{size_bytes / (1 << 10 * step):.{1 if step else 0}f} {_UNITS[step]}"
