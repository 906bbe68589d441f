"""The order of versions of releases."""

from __future__ import annotations

import re

_Parts = list[tuple[int, int, str]]


def version_order(version: str) -> tuple[_Parts, bool, _Parts]:
    """Return a key that sorts versions: numbers as numbers, 1.0.0-rc.1 before 1.0.0 (semver.org, 11).

    Args:
        version: A release's: `1.0.0`, `2.1.0-rc.1`.
    """
    main, _, rest = version.partition("+")[0].partition("-")
    return _parts(main), not rest, _parts(rest)


def _parts(text: str) -> _Parts:
    pieces = re.findall(r"\d+|[^\d.]+", text)
    return [(0, int(each), "") if each.isdigit() else (1, 0, each) for each in pieces]
