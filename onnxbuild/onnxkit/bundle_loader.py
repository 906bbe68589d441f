"""Open the model beside this file with the providers its manifest names.

    from load import load
    session = load()
    outputs = session.run(None, {"input": array})

Needs onnxruntime alone. `python load.py` shows inputs and outputs and runs once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def load() -> Any:
    """An onnxruntime.InferenceSession on the first of the providers that is there and loads."""
    import onnxruntime

    manifest = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))
    there = onnxruntime.get_available_providers()
    chain = [(p["name"], p["options"]) for p in manifest["providers"] if p["name"] in there]
    if not chain:
        wanted = ", ".join(p["name"] for p in manifest["providers"])
        raise SystemExit(f"onnxruntime has none of {wanted}; it has {', '.join(there)}")
    return onnxruntime.InferenceSession(str(HERE / "model.onnx"), providers=chain)


def main() -> None:
    """Show what the model takes and gives, and run it once on ones."""
    import numpy as np

    session = load()
    manifest = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))
    sizes = {name: axis["example"] for name, axis in manifest["dynamic_axes"].items()}
    feeds = {}
    for each in manifest["inputs"]:
        shape = [sizes.get(n, 1) if isinstance(n, str) else n for n in each["shape"]]
        feeds[each["name"]] = np.ones(shape, each["dtype"])
        print("input ", each["name"], each["dtype"], each["shape"])
    print("runs on", session.get_providers()[0])
    for value, array in zip(session.get_outputs(), session.run(None, feeds), strict=True):
        print("output", value.name, array.dtype, list(array.shape))


if __name__ == "__main__":
    main()
