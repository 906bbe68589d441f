"""jsonschema without the packages that check formats which no schema here has, wherever they are installed.

A recipe's schema has no `format`; CycloneDX's, which a bill of materials is checked against, have dates
and IRIs. Jupyter brings these packages along, and so do tools for bills of materials: together they
import 60 modules, and the grammar of IRIs takes 0.8 s to compile.
"""

import sys

__all__ = ["Draft202012Validator", "TypeChecker", "ValidationError", "validators"]

_UNUSED = (
    "fqdn",
    "idna",
    "isoduration",
    "jsonpointer",
    "rfc3987_syntax",
    "uri_template",
    "webcolors",
)

_hidden = [name for name in _UNUSED if name not in sys.modules]
for _name in _hidden:
    sys.modules[_name] = None  # type: ignore[assignment]  # importing it fails: not installed
from jsonschema import Draft202012Validator, TypeChecker, ValidationError, validators  # noqa: E402

for _name in _hidden:
    del sys.modules[_name]
