"""Whether an input's values fit its dtype and its shape, and each other."""

from collections.abc import Iterator

from onnxbuild.core.axis import symbols_of
from onnxbuild.document.faults import Fault, hinted, nearest, show
from onnxbuild.document.node import Node, Path, dotted, locate, locate_key
from onnxbuild.document.parts import Parts

_INTEGER_RANGES = {
    "int64": (-(2**63), 2**63 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int8": (-(2**7), 2**7 - 1),
    "uint8": (0, 2**8 - 1),
}
_FLOAT_MAX = {"float16": 65504.0, "float32": 3.4028234663852886e38, "bfloat16": 3.3895e38}
_TEXT = "a string"


def check_dummy_input(name: str, parts: Parts) -> Iterator[Fault]:
    """Yield the faults, as far as the parts without faults show them."""
    path = ("dummy_inputs", name)
    keys = ("dtype", "low", "high", "fill", "mask", "missing", "arange")
    sound = {key: parts.node(*path, key) for key in keys if parts.sound(*path, key)}
    given = {key: node for key, node in sound.items() if node is not None}
    for first, others in (
        ("arange", ("mask", "fill", "low", "high", "missing")),
        ("mask", ("fill", "low", "high", "missing")),
        ("fill", ("low", "high", "missing")),
    ):
        excluded = [key for key in others if key in given]
        if first in given and excluded:
            named = " and ".join(excluded)
            what = f"{dotted(path)} has {first} and {named}; expected one or the other"
            fix = f"remove `{first}`, or {' and '.join(f'`{key}`' for key in excluded)}"
            yield Fault(what, locate_key(parts.root, (*path, first)), fix)
            return
    dtype = given.pop("dtype", None)
    dtype_name = dtype.value if dtype is not None and isinstance(dtype.value, str) else ""
    yield from _shape(path, given, dtype_name, parts)
    for place, node in _single(path, given):
        expected = _misfit(dtype_name, str(place[2]), node.value) if dtype_name else ""
        if expected:
            what = f"{dotted(place)} is {show(node.value)}; expected {expected} for {dtype_name}"
            fix = "remove it" if expected.startswith("no ") else f"write {expected}"
            if expected == _TEXT:
                fix = f'quote it: `"{show(node.value)}"`'
            yield Fault(what, locate(parts.root, place), f"{fix}, or change `dtype`")
            return
    low = given["low"].value if "low" in given else 0 if dtype_name in _INTEGER_RANGES else None
    high = given["high"].value if "high" in given else None
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low >= high:
        what = f"{dotted(path)} has low {show(low)} and high {show(high)}; expected low < high"
        yield Fault(what, locate(parts.root, (*path, "high")), "write a greater `high`")


def _single(path: Path, given: dict[str, Node]) -> Iterator[tuple[Path, Node]]:
    """Each value but `mask`, one by one where there is a list of them."""
    for key in ("low", "high", "fill"):
        node = given.get(key)
        if node is None:
            continue
        if isinstance(node.value, tuple):
            yield from (((*path, key, n), item) for n, item in enumerate(node.items))
        else:
            yield (*path, key), node


def _shape(
    path: tuple[str, str], given: dict[str, Node], dtype: str, parts: Parts
) -> Iterator[Fault]:
    """Check the options that need an axis, or numbers."""
    shape = parts.node(*path, "shape")
    is_scalar = shape is not None and shape.value == ()
    for key, node in given.items():
        by_row = key in ("mask", "arange") or (key == "fill" and isinstance(node.value, tuple))
        if by_row and is_scalar:
            what = f"{dotted((*path, key))} is for rows, and the shape is []"
            fix = "write one value" if key == "fill" else "remove it"
            yield Fault(what, locate_key(parts.root, (*path, key)), fix)
        if key == "missing" and dtype and not dtype.startswith(("float", "bfloat")):
            what = f"{dotted((*path, key))} makes NaN, which {dtype} has not"
            yield Fault(what, locate_key(parts.root, (*path, key)), "remove it, or change `dtype`")
        if key == "arange" and dtype and dtype not in _INTEGER_RANGES:
            what = f"{dotted((*path, key))} makes integers; the dtype is {dtype}"
            yield Fault(what, locate_key(parts.root, (*path, key)), "write `dtype: int64`")
        if key == "arange" and isinstance(node.value, str):
            yield from _unknown_axes(path, node.value, parts)
        if key == "mask" and dtype == "string":
            what = f"{dotted((*path, key))} makes ones and zeros; the dtype is string"
            yield Fault(what, locate_key(parts.root, (*path, key)), "write `dtype: int64`")


def _unknown_axes(path: tuple[str, str], dimension: str, parts: Parts) -> Iterator[Fault]:
    axes = parts.declared("dynamic_axes")
    for symbol in symbols_of(dimension) if parts.sound("dynamic_axes") else ():
        if symbol not in axes:
            near = nearest(symbol, axes)
            what = f"{dotted((*path, 'arange'))} names axis '{symbol}', which dynamic_axes does not declare"
            fix = (
                f"write `{near}`"
                if near
                else f"declare '{symbol}' in dynamic_axes, or write `arange: 0`"
            )
            yield Fault(hinted(what, near), parts.at(*path, "arange"), fix)


def _misfit(dtype: str, key: str, value: object) -> str:
    """Return the expected form of `value`, or an empty string if it fits."""
    if dtype in ("bool", "string"):
        if key != "fill":
            return "no low and no high"
        wanted, words = (bool, "true or false") if dtype == "bool" else (str, _TEXT)
        return "" if isinstance(value, wanted) else words
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "a number"
    if dtype in _INTEGER_RANGES:
        if not isinstance(value, int):
            return "an integer"
        low, high = _INTEGER_RANGES[dtype]
        high += key == "high"
        fits = low <= value <= high
        return "" if fits else f"an integer from {low} to {high}"
    greatest = _FLOAT_MAX.get(dtype)
    fits = greatest is None or abs(value) <= greatest
    return "" if fits else f"a number from -{greatest:g} to {greatest:g}"
