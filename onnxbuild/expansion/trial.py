"""One way that a search over modes tries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Trial:
    """One way that a search tries.

    Attributes:
        name: Of its steps: VARIANT/NAME.
        mode: The mode's name.
        changes: Options that are not the mode's defaults.
    """

    name: str
    mode: str
    changes: Mapping[str, Any]
