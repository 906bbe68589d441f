"""Decide how the example page shows a model: the kind of its input, the output that holds scores."""

import re
from collections.abc import Sequence
from typing import Any

from onnxbuild.core.axis import Dimension
from onnxbuild.onnxkit.packages.signature import ModelSignature, Port

_LEAST_SIDE = 4
_LARGEST_DRAWN = 64
_MOST_CLASSES = 100_000
_SCORES = re.compile(
    r"logits?|scores?|prob(abilitie)?s?|probability|classes|predictions?", re.IGNORECASE
)
_SCALES: dict[tuple[float, float], str] = {
    (0, 1): "unit",
    (-1, 1): "signed",
    (0, 255): "byte",
    (0, 256): "byte",
}


def view_of(signature: ModelSignature, values: tuple[float, float] | None) -> dict[str, Any]:
    """Return how the page shows the model, as JSON.

    Args:
        values: Least and greatest value that the recipe's dummy image has.
    """
    scores = _scores(signature.outputs)
    labels = signature.labels.get(scores.name) if scores else None
    texts = [each.name for each in signature.outputs if each.dtype == "string"]
    shown = {
        "kind": "values",
        "scores": scores.name if scores else None,
        "labels": list(labels) if labels else None,
        "label": texts[0] if texts else None,
        "ranked": _ranked(signature.outputs, scores) if scores else None,
    }
    if len(signature.inputs) != 1:
        return shown
    (port,) = signature.inputs
    if image := _image(port, values):
        return {**shown, "kind": "image", "input": port.name, "image": image}
    if port.dtype == "string" and port.shape is not None:
        return {**shown, "kind": "text", "input": port.name}
    return shown


def _scores(outputs: Sequence[Port]) -> Port | None:
    """The first output with one number for each class in its rows."""
    for each in outputs:
        shape = each.shape or ()
        count = shape[-1] if shape else None
        is_row = each.dtype.startswith("float") and len(shape) == 2 and isinstance(count, int)  # noqa: PLR2004
        if not is_row or not 1 < int(count or 0) <= _MOST_CLASSES:
            continue
        if each.labels or _SCORES.search(each.name):
            return each
    return None


def _ranked(outputs: Sequence[Port], scores: Port) -> str | None:
    """The output that names each score's class, as `top_k` gives them: strings, else integers; None where none may."""
    if scores.labels:
        return None
    places = (scores.shape or ())[-1]
    alike = [each for each in outputs if each.shape == scores.shape]
    texts = [each for each in alike if each.dtype == "string"]
    texts = [each for each in texts if not each.labels or len(each.labels) >= int(places)]
    whole = [each for each in alike if each.dtype == "int64"]
    return next((each.name for each in (*texts, *whole)), None)


def _image(port: Port, values: tuple[float, float] | None) -> dict[str, Any] | None:
    """Layout, channels and sides of an image; None where the input is none."""
    is_whole = port.dtype == "uint8"
    if not is_whole and not port.dtype.startswith("float"):
        return None
    match port.shape:
        case (_, 1 | 3 as channels, height, width) if _is_side(height) and _is_side(width):
            layout = "nchw"
        case (_, height, width, 1 | 3 as channels) if _is_side(height) and _is_side(width):
            layout = "nhwc"
        case _:
            return None
    sides = [each for each in (height, width) if isinstance(each, int)]
    draws = channels == 1 and (not sides or max(sides) <= _LARGEST_DRAWN)
    return {
        "layout": layout,
        "channels": channels,
        "height": height,
        "width": width,
        "whole": is_whole,
        "draws": draws,
        "range": list(values) if values else None,
        "scale": _SCALES.get(values, "unit") if values else "unit",
    }


def _is_side(size: Dimension) -> bool:
    """Return whether a size may be that of an image's side; an axis may, a sum of axes may not."""
    return "+" not in size if isinstance(size, str) else size >= _LEAST_SIDE
