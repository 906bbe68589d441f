"""Golden points in a package: inputs, and what the original gives for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnxbuild.core.params import from_json, to_json
from onnxbuild.onnxkit.accuracy.judged_outputs import bounds_at
from onnxbuild.onnxkit.accuracy.tolerances import Tolerance, VariantTolerances
from onnxbuild.onnxkit.accuracy.verdict import Bounds
from onnxbuild.onnxkit.data.array_files import NUMPY_DTYPES
from onnxbuild.onnxkit.data.reference_files import PointEntry, read_points, read_reference
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.packages.signature import ModelSignature, Port

GOLDEN = "golden"
INDEX_FILE = "points.json"
_GOLDEN_BYTES = 16 << 20
"""Limit for a package's golden points: it has the first that fit, and at least one."""


def golden_points(reference: Path, most: int | None = None) -> tuple[PointEntry, ...]:
    """Return the points of a reference that a package holds.

    Args:
        most: Number of points; None for as many as fit.
    """
    points = read_points(reference)[:most]
    kept, left = [points[0]], _GOLDEN_BYTES - _size(reference, points[0])
    for each in points[1:]:
        left -= _size(reference, each)
        if left < 0:
            break
        kept.append(each)
    return tuple(kept)


def no_golden_port(signature: ModelSignature) -> Port | None:
    """Return an input or output of a type that golden files don't hold; None if there is none."""
    return next((each for each in signature.ports if each.dtype not in NUMPY_DTYPES), None)


def _size(reference: Path, point: PointEntry) -> int:
    return (reference / point.file).stat().st_size


def write_plain_points(
    folder: Path,
    reference: Path,
    tolerances: VariantTolerances,
    *,
    dtypes: Mapping[str, str] | None = None,
    most: int | None = None,
) -> list[dict[str, Any]]:
    """Write golden points for programs that can't read NumPy's files; return what points.json says.

    points.json lists them: `name`, `sizes` of the axes, `inputs` and `outputs`, each with `name`, `dtype`,
    `shape` and `file`, outputs with `bounds`, too; `skipped_rows` (of the first axis), where there are rows
    that no rounding may be judged by. A file holds the elements in C order: numbers little-endian, a bool as
    one byte, strings as a JSON list.

    Args:
        dtypes: Input -> type that the model takes, which may be half of the reference's; others are left out.
            None for the reference's inputs as they are.
        most: Number of points; None for as many as fit.
    """
    wanted = {each.name for each in golden_points(reference, most)}
    listed = []
    for number, point in enumerate(p for p in read_reference(reference) if p.name in wanted):
        place = f"{number:02}"
        (folder / place).mkdir(parents=True)
        inputs = _written(folder, f"{place}/input", _taken(point.feeds, dtypes))
        outputs = _written(folder, f"{place}/output", point.outputs)
        for each in outputs:
            each["bounds"] = to_json(bounds_at(point, each["name"], tolerances))
        about: dict[str, Any] = {"name": point.name, "sizes": dict(point.sizes)}
        if point.on_threshold is not None:
            about["skipped_rows"] = [int(row) for row in point.on_threshold.nonzero()[0]]
        listed.append({**about, "inputs": inputs, "outputs": outputs})
    text = json.dumps(listed, indent=1, sort_keys=True) + "\n"
    (folder / INDEX_FILE).write_text(text, encoding="utf-8", newline="\n")
    return listed


def read_plain_tolerances(folder: Path) -> VariantTolerances:
    """Return the bounds of a package's outputs, as `write_plain_points` writes them.

    Raises:
        ValueError: points.json is not as it writes it.
        OSError: It can't be read.
    """
    listed = json.loads((folder / INDEX_FILE).read_text(encoding="utf-8"))
    outputs = {}
    try:
        for each in (output for point in listed for output in point["outputs"]):
            bounds = from_json(Bounds, each["bounds"])
            if "float" in each["dtype"]:
                own = Tolerance(bounds.atol, bounds.rtol, bounds.cosine_min, bounds.sqnr_db_min)
            else:
                own = Tolerance(atol=bounds.apart or None, equal_min=bounds.equal_min)
            outputs[each["name"]] = own
    except (TypeError, KeyError) as error:
        raise ValueError(f"{INDEX_FILE} lacks {error}") from error
    return VariantTolerances(outputs=outputs)


def read_plain_outputs(folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """Return point -> output -> array, as a program wrote them: a points.json with `outputs` alone.

    Raises:
        ValueError: points.json, or a file that it names, is not as `write_plain_points` writes it.
        OSError: One can't be read.
    """
    return _read_side(folder, "outputs")


def read_plain_inputs(folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """Return point -> input -> array, as `write_plain_points` writes them; errors as of `read_plain_outputs`."""
    return _read_side(folder, "inputs")


def _read_side(folder: Path, side: str) -> dict[str, dict[str, np.ndarray]]:
    listed = json.loads((folder / INDEX_FILE).read_text(encoding="utf-8"))
    try:
        return {
            point["name"]: {each["name"]: _read(folder, each) for each in point[side]}
            for point in listed
        }
    except (TypeError, KeyError) as error:
        raise ValueError(f"{INDEX_FILE} lacks {error}") from error


def _taken(
    feeds: Mapping[str, np.ndarray], dtypes: Mapping[str, str] | None
) -> Mapping[str, np.ndarray]:
    if dtypes is None:
        return feeds
    return {
        name: array.astype("float16") if dtypes[name] == "float16" else array
        for name, array in feeds.items()
        if name in dtypes
    }


def _written(folder: Path, stem: str, arrays: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """Write arrays; return what points.json says of each."""
    listed: list[dict[str, Any]] = []
    for number, (name, array) in enumerate(arrays.items()):
        is_text = array.dtype.kind == "U"
        file = f"{stem}-{number}{'.json' if is_text else '.bin'}"
        if is_text:
            text = json.dumps(array.ravel().tolist()) + "\n"
            (folder / file).write_text(text, encoding="utf-8", newline="\n")
        else:
            ordered = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
            (folder / file).write_bytes(ordered.tobytes())
        dtype = "string" if is_text else array.dtype.name
        listed.append({"name": name, "dtype": dtype, "shape": list(array.shape), "file": file})
    return listed


def _read(folder: Path, about: Mapping[str, Any]) -> np.ndarray:
    path = folder / about["file"]
    if about["dtype"] == "string":
        texts = json.loads(path.read_text(encoding="utf-8"))
        found: np.ndarray = np.array(texts, dtype=np.str_)
        return found.reshape(about["shape"])
    dtype = np.dtype(about["dtype"]).newbyteorder("<")
    numbers: np.ndarray = np.frombuffer(path.read_bytes(), dtype)
    return numbers.reshape(about["shape"])
