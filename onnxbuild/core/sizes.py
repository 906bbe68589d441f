"""Sizes for people."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(size_bytes: int) -> str:
    """Return a size in the unit that says most: `1.5 MiB`."""
    step = min((max(size_bytes, 1).bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{size_bytes / (1 << 10 * step):.{1 if step else 0}f} {_UNITS[step]}"


def counted(count: int, noun: str) -> str:
    """Return `1 result` or `3 results`.

    Args:
        count: How many.
        noun: What, in the singular; its plural ends in s.
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
