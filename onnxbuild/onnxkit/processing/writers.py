"""Operations on images and outputs as ONNX operators. Images are NHWC; sizes are computed in the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.processing.options import (
    CenterCropOptions,
    LetterboxOptions,
    NmsOptions,
    NormalizeOptions,
    PoolOptions,
    RescaleOptions,
    ResizeOptions,
    ValueType,
)
from onnxbuild.onnxkit.processing.plan import PlannedOperation

_NONE: Mapping[str, Any] = MappingProxyType({})


class GraphWriter:
    """Nodes in order, and the constants that they read.

    Attributes:
        nodes: In order.
        constants: Initializers.
        types: Of values that operators give whose schema ONNX does not know.
    """

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.types: list[onnx.ValueInfoProto] = []
        self._prefix = ""
        self._count = 0

    def begin(self, prefix: str) -> None:
        """Begin another operation; its names start with `prefix`."""
        self._prefix, self._count = prefix, 0

    def node(
        self,
        operator: str,
        *inputs: str,
        results: Sequence[str] = ("",),
        attributes: Mapping[str, Any] = _NONE,
        domain: str = "",
    ) -> str:
        """Add a node; returns its first output.

        Args:
            inputs: Names of values; empty for one that is left out.
            results: Names of its outputs; an empty one for a new name.
            domain: Of the operator; empty for ONNX's own.
        """
        outputs = [each or self._name(operator) for each in results]
        name = self._name(operator)
        self.nodes.append(
            onnx.helper.make_node(
                operator, list(inputs), outputs, name=name, domain=domain or None, **attributes
            )
        )
        return outputs[0]

    def constant(self, value: Any, dtype: str) -> str:
        """Add an initializer; returns its name.

        Args:
            value: An array, or what numpy makes one of.
            dtype: As numpy spells it; `string` for text.
        """
        name = self._name("constant")
        if dtype == "string":
            encoded = [str(each).encode("utf-8") for each in value]
            tensor = onnx.helper.make_tensor(
                name, onnx.TensorProto.STRING, [len(encoded)], encoded
            )
        else:
            array: np.ndarray = np.asarray(value, dtype)
            tensor = onnx.numpy_helper.from_array(array, name)
        self.constants.append(tensor)
        return name

    def cast(self, value: str, dtype: str, result: str = "") -> str:
        """Add a Cast; returns its output."""
        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.node("Cast", value, results=(result,), attributes={"to": kind})

    def _name(self, stem: str) -> str:
        self._count += 1
        return f"{self._prefix}/{stem}_{self._count}"


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
    array = np.asarray(values, np.float64)
    return array[:, None, None] if kind.layout == "NCHW" else array


def write_to_nchw(graph: GraphWriter, value: str, result: str, _: object, __: ValueType) -> None:
    """Transpose."""
    graph.node("Transpose", value, results=(result,), attributes={"perm": _CHANNELS_FIRST})


_LEAST_LENGTH, _LEAST_COUNT = 1e-12, 1e-9
"""torch.nn.functional.normalize's eps; sentence-transformers' least number of tokens."""


def write_on_output(graph: GraphWriter, each: PlannedOperation, labels: Sequence[str]) -> None:
    """Write an operation.

    Args:
        each: What it takes and gives.
        labels: Of `labels`; else empty.
    """
    takes, gives, options = list(each.takes), tuple(each.gives), each.options
    value = takes[0]
    match each.name:
        case "softmax":
            graph.node("Softmax", value, results=gives, attributes={"axis": -1})
        case "sigmoid":
            graph.node("Sigmoid", value, results=gives)
        case "argmax":
            graph.node("ArgMax", value, results=gives, attributes={"axis": -1, "keepdims": 0})
        case "top_k":
            count = graph.constant([options.k], "int64")
            graph.node("TopK", value, count, results=gives[::-1], attributes={"axis": -1})
        case "threshold":
            kind = each.takes[value].dtype or "float32"
            bound = graph.constant(options.min, kind)
            graph.node("GreaterOrEqual", value, bound, results=gives)  # no NaN is
        case "labels":
            table = graph.constant(labels, "string")
            graph.node("Gather", table, graph.cast(value, "int64"), results=gives)
        case "pool":
            _write_pool(graph, each, options)
        case "l2_normalize":
            _write_l2_normalize(graph, each)
        case "nms":
            _write_nms(graph, each.takes, gives[0], options)
        case _:
            raise AssertionError(each.name)


def _write_pool(graph: GraphWriter, each: PlannedOperation, options: PoolOptions) -> None:
    value, gives = next(iter(each.takes)), tuple(each.gives)
    if options.mode == "cls":
        first = graph.constant(0, "int64")
        graph.node("Gather", value, first, results=gives, attributes={"axis": 1})
        return
    axis = graph.constant([1], "int64")
    kind = each.takes[value].dtype or "float32"
    if options.mask:
        mask = graph.cast(list(each.takes)[1], kind)
        mask = graph.node("Unsqueeze", mask, graph.constant([2], "int64"))
        value = graph.node("Mul", value, mask)
    else:
        shape = graph.node("Shape", value)
        mask = graph.cast(graph.node("Gather", shape, axis), kind)
    total = graph.node("ReduceSum", value, axis, attributes={"keepdims": 0})
    if options.mask:
        mask = graph.node("ReduceSum", mask, axis, attributes={"keepdims": 0})
    least = graph.constant(1e-4 if kind == "float16" else _LEAST_COUNT, kind)
    graph.node("Div", total, graph.node("Max", mask, least), results=gives)


def _write_l2_normalize(graph: GraphWriter, each: PlannedOperation) -> None:
    ((value, kind),) = each.takes.items()
    dtype = kind.dtype or "float32"
    exact = graph.cast(value, "float32")  # squares of float16 overflow
    squares = graph.node(
        "ReduceSum", graph.node("Mul", exact, exact), graph.constant([-1], "int64")
    )
    length = graph.node(
        "Max", graph.node("Sqrt", squares), graph.constant(_LEAST_LENGTH, "float32")
    )
    graph.cast(graph.node("Div", exact, length), dtype, next(iter(each.gives)))


def _write_nms(
    graph: GraphWriter, takes: Mapping[str, ValueType], result: str, options: NmsOptions
) -> None:
    boxes, scores = (
        value if kind.dtype == "float32" else graph.cast(value, "float32")  # it takes no other
        for value, kind in takes.items()
    )
    graph.node(
        "NonMaxSuppression",
        boxes,
        scores,
        graph.constant([options.most], "int64"),
        graph.constant([options.iou], "float32"),
        graph.constant([options.min_score], "float32"),
        results=(result,),
        attributes={"center_point_box": int(options.form == "center")},
    )
