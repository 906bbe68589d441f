"""Operations on images as ONNX operators. Images are NHWC; sizes are computed in the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnxbuild.onnxkit.processing.graph_writer import GraphWriter
from onnxbuild.onnxkit.processing.options import (
    CenterCropOptions,
    LetterboxOptions,
    NormalizeOptions,
    RescaleOptions,
    ResizeOptions,
)
from onnxbuild.onnxkit.processing.values import ValueType

_MODES: Mapping[str, str] = {"bilinear": "linear", "bicubic": "cubic"}
_PIL_CUBIC, _PLAIN_CUBIC = -0.5, -0.75
"""Pillow's bicubic_filter (Resample.c) has a = -0.5; ONNX's default, OpenCV's and PyTorch's is -0.75."""

_CHANNELS_FIRST, _CHANNELS_LAST = [0, 3, 1, 2], [0, 2, 3, 1]


def write_resize(
    graph: GraphWriter, value: str, result: str, options: ResizeOptions, _: ValueType
) -> None:
    """Compute height and width, then resize."""
    if options.size is not None:
        size = graph.constant(list(options.size), "int64")
    else:
        found = _height_and_width(graph, value)
        sides = [graph.node("Gather", found, graph.constant([n], "int64")) for n in (0, 1)]
        short = graph.node("Min", *sides)
        longer = graph.node("Mul", found, graph.constant([options.shortest], "int64"))
        size = graph.node("Div", longer, short)
    _resize(graph, value, size, result, options)


def _height_and_width(graph: GraphWriter, value: str) -> str:
    shape = graph.node("Shape", value)
    return graph.node("Gather", shape, graph.constant([1, 2], "int64"))


def _channels_first(graph: GraphWriter, value: str) -> tuple[str, str]:
    """Images with their channels before height and width; and the sizes before these."""
    image = graph.node("Transpose", value, attributes={"perm": _CHANNELS_FIRST})
    return image, graph.node("Gather", graph.node("Shape", image), graph.constant([0, 1], "int64"))


def _resize(
    graph: GraphWriter,
    value: str,
    size: str,
    result: str,
    options: ResizeOptions | LetterboxOptions,
) -> None:
    """Resize along one axis, then along the other, with pixels rounded between: as Pillow does.

    Without antialias, resize along both at once in floats: as OpenCV and PyTorch do.

    Pillow 13 takes the axis first that leaves the smaller image, up to 12 it took the width. The sizes of both axes are
    given each time: with the attribute `axes`, ONNX Runtime 1.31 moves a Transpose across Resize and
    loses the sizes.
    """
    if not options.antialias:
        _resize_plainly(graph, value, size, result, options)
        return
    found = _height_and_width(graph, value)
    height, width = (
        [graph.node("Gather", each, graph.constant([n], "int64")) for each in (found, size)]
        for n in (0, 1)
    )
    between = graph.node("Concat", height[0], width[1], attributes={"axis": 0})
    if options.first == "smaller":
        high = graph.node("Concat", height[1], width[0], attributes={"axis": 0})
        areas = [graph.node("Mul", height[0], width[1]), graph.node("Mul", height[1], width[0])]
        between = graph.node("Where", graph.node("Greater", *areas), high, between)
    first, outer = _channels_first(graph, value)
    for sizes in (between, size):
        full = graph.node("Concat", outer, sizes, attributes={"axis": 0})
        first = _resize_once(graph, first, full, options)
    graph.node("Transpose", first, results=(result,), attributes={"perm": _CHANNELS_LAST})


def _resize_once(
    graph: GraphWriter, value: str, sizes: str, options: ResizeOptions | LetterboxOptions
) -> str:
    attributes = {
        "mode": _MODES[options.method],
        "coordinate_transformation_mode": "half_pixel",
        "cubic_coeff_a": _PIL_CUBIC,
        "exclude_outside": 1,
        "antialias": 1,
    }
    return graph.node("Resize", value, "", "", sizes, attributes=attributes)


def _resize_plainly(
    graph: GraphWriter,
    value: str,
    size: str,
    result: str,
    options: ResizeOptions | LetterboxOptions,
) -> None:
    # Without the filter of antialias ONNX Runtime lets uint8 overflow: floats are rounded and clipped.
    image, outer = _channels_first(graph, value)
    full = graph.node("Concat", outer, size, attributes={"axis": 0})
    attributes = {
        "mode": _MODES[options.method],
        "coordinate_transformation_mode": "half_pixel",
        "cubic_coeff_a": _PLAIN_CUBIC,
    }
    image = graph.cast(image, "float32")
    exact = graph.node("Resize", image, "", "", full, attributes=attributes)
    bounds = [graph.constant(each, "float32") for each in (0, 255)]
    whole = graph.cast(graph.node("Clip", graph.node("Round", exact), *bounds), "uint8")
    graph.node("Transpose", whole, results=(result,), attributes={"perm": _CHANNELS_LAST})


def write_letterbox(
    graph: GraphWriter, value: str, result: str, options: LetterboxOptions, _: ValueType
) -> None:
    """Scale by the lesser ratio, then fill both sides; the odd pixel goes to the bottom and the right."""
    frame = graph.constant(list(options.size), "int64")
    found = graph.cast(_height_and_width(graph, value), "float64")
    ratios = graph.node("Div", graph.cast(frame, "float64"), found)
    sides = [graph.node("Gather", ratios, graph.constant([n], "int64")) for n in (0, 1)]
    scaled = graph.node("Round", graph.node("Mul", found, graph.node("Min", *sides)))
    size = graph.node("Max", graph.cast(scaled, "int64"), graph.constant([1], "int64"))
    fitted = f"{result}/fitted"
    _resize(graph, value, size, fitted, options)
    left = graph.node("Sub", frame, size)
    fill = graph.constant(options.fill, "uint8")
    _pad(graph, fitted, left, result, fill)


def _pad(graph: GraphWriter, value: str, total: str, result: str, fill: str) -> None:
    """Add pixels on both sides: half of `total`, rounded down, before; the rest after."""
    before = graph.node("Div", total, graph.constant([2], "int64"))
    after = graph.node("Sub", total, before)
    none = graph.constant([0], "int64")
    pads = graph.node("Concat", none, before, none, none, after, none, attributes={"axis": 0})
    graph.node("Pad", value, pads, fill, results=(result,))


def write_center_crop(
    graph: GraphWriter, value: str, result: str, options: CenterCropOptions, kind: ValueType
) -> None:
    """Fill up what is too small, then cut; starts are rounded half to even, as Python rounds."""
    size = graph.constant(list(options.size), "int64")
    found = _height_and_width(graph, value)
    if kind.least < max(options.size):
        zero = graph.constant([0], "int64")
        missing = graph.node("Max", graph.node("Sub", size, found), zero)
        filled = f"{result}/filled"
        _pad(graph, value, missing, filled, graph.constant(0, kind.dtype or "uint8"))
        value, found = filled, graph.node("Max", found, size)
    spare = graph.cast(graph.node("Sub", found, size), "float32")
    half = graph.node("Mul", spare, graph.constant(0.5, "float32"))
    start = graph.cast(graph.node("Round", half), "int64")
    end = graph.node("Add", start, size)
    axes = graph.constant([1, 2], "int64")
    graph.node("Slice", value, start, end, axes, results=(result,))


def write_rescale(
    graph: GraphWriter, value: str, result: str, options: RescaleOptions, _: ValueType
) -> None:
    """Convert to float32, then multiply."""
    factor = graph.constant(options.factor, "float32")
    graph.node("Mul", graph.cast(value, "float32"), factor, results=(result,))


def write_normalize(
    graph: GraphWriter, value: str, result: str, options: NormalizeOptions, kind: ValueType
) -> None:
    """Subtract and divide, along the axis of channels."""
    mean, std = (
        graph.constant(_along_channels(each, kind), kind.dtype or "float32")
        for each in (options.mean, options.std)
    )
    graph.node("Div", graph.node("Sub", value, mean), std, results=(result,))


def _along_channels(values: Sequence[float], kind: ValueType) -> object:
    import numpy as np

    array = np.asarray(values, np.float64)
    return array[:, None, None] if kind.layout == "NCHW" else array


def write_to_nchw(graph: GraphWriter, value: str, result: str, _: object, __: ValueType) -> None:
    """Transpose."""
    graph.node("Transpose", value, results=(result,), attributes={"perm": _CHANNELS_FIRST})
