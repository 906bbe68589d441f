"""jsonschema without the grammar of IRIs, which it compiles (0.8 s) wherever that is installed.

No recipe holds an IRI. Jupyter brings the grammar along, and so do tools for bills of materials.
"""

from __future__ import annotations

import sys

__all__ = ["Draft202012Validator", "TypeChecker", "ValidationError", "validators"]

_GRAMMAR = "rfc3987_syntax"

_hidden = _GRAMMAR not in sys.modules
if _hidden:
    sys.modules[_GRAMMAR] = None  # type: ignore[assignment]  # importing it fails: not installed
from jsonschema import Draft202012Validator, TypeChecker, ValidationError, validators  # noqa: E402

if _hidden:
    del sys.modules[_GRAMMAR]
