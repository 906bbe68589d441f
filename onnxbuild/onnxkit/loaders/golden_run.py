"""Run the golden inputs through the model in this package, and compare with the original's outputs.

    python -m PACKAGE                    on the first provider that is there and loads
    python -m PACKAGE cuda               on that target
    python -m PACKAGE --outputs FOLDER   write what the model gives, too: one .npz a point

Exit codes: 0 all outputs are within the tolerances that the model was built with, 1 one is not, 3 the model
can't be loaded here.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnxbuild.onnxkit.loaders.onnx_bundle import load
from onnxbuild.onnxkit.loaders.shared import LoadError

GOLDEN = Path(__file__).resolve().parent / "golden"


def main() -> None:
    """Run all points; a line each."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}",
        description="Run the golden inputs through the model, and compare with the original's outputs.",
        epilog="Exit codes: 0 all is within the tolerances, 1 something is not, 3 the model can't be loaded here.",
    )
    parser.add_argument("target", nargs="?", default="", help="one of the manifest's targets")
    parser.add_argument("--outputs", type=Path, metavar="FOLDER", help="write one .npz a point")
    asked = parser.parse_args()
    try:
        session = load(asked.target)
    except LoadError as error:
        print(error, file=sys.stderr)
        raise SystemExit(3) from error
    print("runs on", session.get_providers()[0])
    raise SystemExit(0 if passes(session, asked.outputs) else 1)


def passes(session: Any, folder: Path | None) -> bool:
    """Return whether all outputs at all points are within the tolerances; print what is not.

    Args:
        session: An onnxruntime.InferenceSession.
        folder: Where the outputs are written; None for nowhere.
    """
    import numpy as np

    bounds = json.loads((GOLDEN / "tolerances.json").read_text(encoding="utf-8"))
    counts: dict[str, list[int]] = {}
    good = True
    for point in json.loads((GOLDEN / "points.json").read_text(encoding="utf-8")):
        with np.load(GOLDEN / point["file"], allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
        expected = _side(found, "output.")
        outputs = _run(session, _side(found, "input."), expected)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            _write(folder / point["file"], outputs)
        kept = ~found["on_threshold"] if "on_threshold" in found else ...
        faults = []
        for name, reference in expected.items():
            actual = _alike(outputs[name], reference)
            if actual.shape != reference.shape or actual.dtype != reference.dtype:
                faults.append(f"{name}: {actual.dtype} {list(actual.shape)}")
            elif reference.dtype.kind == "f":
                fault = float_fault(actual[kept], reference[kept], bounds[name])
                faults += [f"{name}: {fault}"] if fault else []
            else:
                wrong = differing(actual[kept], reference[kept], bounds[name]["apart"])
                count = counts.setdefault(name, [0, 0])
                count[0], count[1] = count[0] + wrong, count[1] + reference[kept].size
        print(f"{point['name']}: {'; '.join(faults) or 'ok'}")
        good = good and not faults
    for name, (wrong, elements) in counts.items():
        least = bounds[name]["equal_min"]
        share = 1 - wrong / elements if elements else 1.0
        if least is not None and share < least:
            print(f"{name}: {share:.4f} of all elements are equal; at least {least:g} are wanted")
            good = False
    return good


def float_fault(actual: Any, expected: Any, bounds: Mapping[str, Any]) -> str:
    """Return what is wrong with an output of floats; empty if nothing is.

    Args:
        actual: Array a.
        expected: Array b, of the same shape.
        bounds: `atol` and `rtol`: |a - b| <= atol + rtol |b|. `cosine_min`: of <a, b> / (|a| |b|).
            `sqnr_db_min`: of 10 log10(sum b^2 / sum (a - b)^2). One that is None is not checked.
    """
    import numpy as np

    a, b = actual.astype(np.float64).ravel(), expected.astype(np.float64).ravel()
    infinite = np.isinf(b)
    if np.isnan(a).any() or not np.array_equal(np.isinf(a), infinite):
        return "NaN, or infinities that the original does not have"
    if not np.array_equal(a[infinite], b[infinite]):
        return "infinities of the other sign"
    a, b = a[~infinite], b[~infinite]
    distance = np.abs(a - b)
    if bounds["atol"] is not None or bounds["rtol"] is not None:
        allowed = (bounds["atol"] or 0.0) + (bounds["rtol"] or 0.0) * np.abs(b)
        count = int((distance > allowed).sum())
        if count:
            return f"{count} of {b.size} elements are too far off, by up to {distance.max():.3g}"
    if not distance.any():
        return ""
    size, error = float(np.abs(b).max()), float(distance.max())
    if bounds["cosine_min"] is not None:
        largest = float(np.abs(a).max())
        cosine = 0.0
        if size and largest:
            a, d = a / largest, b / size  # squares neither overflow nor vanish
            cosine = float((a * d).sum()) / math.sqrt(float((a * a).sum()) * float((d * d).sum()))
        if cosine < bounds["cosine_min"]:
            return f"cosine {cosine:.5f}; at least {bounds['cosine_min']:g} is wanted"
    if bounds["sqnr_db_min"] is not None:
        if not size:
            return f"the original is all zeros, this has {error:.3g}"
        scale = max(size, error)
        signal, noise = float(((b / scale) ** 2).sum()), float(((distance / scale) ** 2).sum())
        ratio = (
            10 * math.log10(signal / noise) if signal and noise else math.inf * (signal - noise)
        )
        if ratio < bounds["sqnr_db_min"]:
            return f"signal to noise {ratio:.1f} dB; at least {bounds['sqnr_db_min']:g} is wanted"
    return ""


def differing(actual: Any, expected: Any, apart: float) -> int:
    """Return how many elements differ: of integers those that are more than `apart` from each other."""
    import numpy as np

    if not apart or expected.dtype.kind not in "iu":
        return int((actual != expected).sum())
    gap = np.maximum(actual, expected).astype(np.uint64) - np.minimum(actual, expected).astype(
        np.uint64
    )
    return int((gap > apart).sum())


def _run(session: Any, feeds: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What the model gives, by name."""
    import numpy as np

    types = {each.name: each.type for each in session.get_inputs()}
    given = {}
    for name, array in feeds.items():
        if name in types:  # what the model has no use for, it does not take
            given[name] = array.astype(object) if array.dtype.kind == "U" else array
            if types[name] == "tensor(float16)":
                given[name] = array.astype(np.float16)
    outputs = session.run(list(wanted), given)
    return dict(zip(wanted, outputs))  # noqa: B905 - Python 3.9 runs this, too


def _write(path: Path, outputs: Mapping[str, Any]) -> None:
    """Write what numpy.savez writes, which takes no array that is called `file`."""
    import numpy as np

    with zipfile.ZipFile(path, "w") as archive:
        for name, array in outputs.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(_plain(array)), allow_pickle=False)


def _alike(actual: Any, expected: Any) -> Any:
    """An output as the golden one is kept: strings as Unicode, fp16 as what the original gives."""
    if expected.dtype.kind == "U":
        return actual.astype(str).astype(expected.dtype) if actual.dtype.kind == "O" else actual
    is_half = actual.dtype == "float16" and expected.dtype.kind == "f"
    return actual.astype(expected.dtype) if is_half else actual


def _plain(array: Any) -> Any:
    """An array without Python objects."""
    return array.astype(str) if array.dtype.kind == "O" else array


def _side(arrays: Mapping[str, Any], side: str) -> dict[str, Any]:
    """Those arrays whose names begin so, without that."""
    return {n.removeprefix(side): each for n, each in arrays.items() if n.startswith(side)}


if __name__ == "__main__":
    main()
