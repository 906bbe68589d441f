"""Find the frontend that takes a value which a callable returned."""

from __future__ import annotations

import sys
from pathlib import Path

_TYPES = (
    ("pytorch", "torch.nn", "Module"),
    ("onnx", "onnx", "ModelProto"),
    ("xgboost", "xgboost", "XGBModel"),
    ("xgboost", "xgboost", "Booster"),
    ("lightgbm", "lightgbm", "LGBMModel"),
    ("lightgbm", "lightgbm", "Booster"),
    ("sklearn", "sklearn.base", "BaseEstimator"),
)
"""(frontend, module, type); the boosters' estimators are scikit-learn's, too."""


def frontend_of(value: object) -> str:
    """Return the frontend that takes a value; empty if none does. Imports nothing."""
    if isinstance(value, type):
        return ""
    for frontend, module, name in _TYPES:
        known = getattr(sys.modules.get(module), name, None)
        if isinstance(known, type) and isinstance(value, known):
            return frontend
    is_path = isinstance(value, (str, Path)) and str(value).endswith(".onnx")
    return "onnx" if is_path else ""


def frontend_fix(value: object, otherwise: str) -> str:
    """Return the fix that names the frontend for a value; `otherwise` where there is none."""
    found = frontend_of(value)
    return f"write `frontend: {found}`" if found else otherwise
