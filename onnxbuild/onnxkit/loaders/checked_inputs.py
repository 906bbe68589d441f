"""Check inputs against a model's signature before ONNX Runtime gets them: a part of Python wheels. Written by onnxbuild."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class InputError(ValueError):
    """An input is not what the model takes; `input` is its name."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"input '{name}' {message}" if name else message)
        self.input = name


def checked_inputs(
    given: Any, ports: Sequence[Mapping[str, Any]], axes: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    """Return inputs as ONNX Runtime takes them: name -> array.

    An array is passed on if its type is the input's, or converts to it without loss. Numbers in nested lists
    become an array. Two axes of one name have one size.

    Args:
        given: Input -> array, or numbers in nested lists.
        ports: `name`, `dtype` and `shape` of each input; a shape has ints, axes and sums, or is None.
        axes: Axis -> `min`, `max` and `multiple_of`.

    Raises:
        InputError: An input is missing, unknown, or of another type, rank or size.
    """
    names = ", ".join(f"'{port['name']}'" for port in ports)
    if not isinstance(given, Mapping):
        raise InputError("", f"run() takes a mapping of inputs by name: {names}")
    for name in given:
        if all(name != port["name"] for port in ports):
            raise InputError(str(name), f"is none of this model's: {names}")
    found: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    for port in ports:
        if given.get(port["name"]) is None:
            raise InputError(port["name"], f"is missing: {_described(port)}")
        array = _array(port, given[port["name"]])
        _bind(port, array, sizes)
        found[port["name"]] = array
    for port in ports:
        _check_shape(port, found[port["name"]].shape, sizes, axes)
    return found


def _described(port: Mapping[str, Any]) -> str:
    shape = "any shape" if port["shape"] is None else f"shape {_shape_text(port['shape'])}"
    return f"the model takes {port['dtype']} of {shape}"


def _shape_text(shape: Sequence[int | str]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _array(port: Mapping[str, Any], value: Any) -> Any:
    """The value in the array that its dtype has."""
    import numpy as np

    name, dtype = port["name"], port["dtype"]
    is_array = isinstance(value, (np.ndarray, np.generic))
    try:
        array: Any = np.asarray(value)
    except ValueError as error:  # lists of different lengths
        raise InputError(name, f"is no array: {error}") from error
    if dtype == "string":
        texts = array.astype(object)
        if not array.size or all(isinstance(each, str) for each in texts.flat):
            return texts
        raise InputError(name, f"holds {array.dtype}: {_described(port)}")
    wanted = np.dtype(dtype)
    if array.dtype.kind not in "biuf":
        raise InputError(name, f"holds {array.dtype}: {_described(port)}")
    if array.dtype == wanted or np.can_cast(array.dtype, wanted, "safe"):
        return array.astype(wanted, copy=False)
    if is_array:
        raise InputError(name, f"is {array.dtype}: {_described(port)}")
    return _converted(port, array, wanted)


def _converted(port: Mapping[str, Any], array: Any, wanted: np.dtype[Any]) -> Any:
    """Numbers of Python, whose type NumPy chose."""
    import numpy as np

    if wanted.kind == "f" and array.dtype.kind in "iuf":
        return array.astype(wanted)
    if wanted.kind in "iu" and (array.dtype.kind in "iu" or not array.size):
        limits = np.iinfo(wanted)
        if not array.size or (limits.min <= int(array.min()) and int(array.max()) <= limits.max):
            return array.astype(wanted)
        range_text = f"{limits.min} to {limits.max}"
        raise InputError(port["name"], f"holds numbers that are not within {range_text}")
    if wanted.kind == "b" and np.isin(array, (0, 1)).all():
        return array.astype(wanted)
    raise InputError(port["name"], f"holds {array.dtype}: {_described(port)}")


def _bind(port: Mapping[str, Any], array: Any, sizes: dict[str, int]) -> None:
    """Note which size each axis has."""
    shape = port["shape"]
    if shape is None:
        return
    if len(shape) != array.ndim:
        what = f"has {array.ndim} dimensions, {_shape_text(array.shape)}: {_described(port)}"
        raise InputError(port["name"], what)
    for size, found in zip(shape, array.shape):  # noqa: B905 - Python 3.9 runs this, too
        if isinstance(size, str) and "+" not in size:
            sizes.setdefault(size, found)


def _check_shape(
    port: Mapping[str, Any],
    shape: Sequence[int],
    sizes: Mapping[str, int],
    axes: Mapping[str, Mapping[str, int]],
) -> None:
    for at, (size, found) in enumerate(zip(port["shape"] or (), shape)):  # noqa: B905 - as above
        given = f"is of size {found} in dimension {at} of {_shape_text(shape)}"
        if not isinstance(size, str):
            if found != size:
                raise InputError(port["name"], f"{given}; it is {size}: {_described(port)}")
            continue
        wanted = _size_at(size, sizes)
        if wanted is not None and found != wanted:
            raise InputError(port["name"], f"{given}; '{size}' is {wanted} here")
        axis = axes.get(size)
        if axis is None:
            continue
        if not axis["min"] <= found <= axis["max"] or found % axis["multiple_of"]:
            rule = f"{axis['min']} to {axis['max']}"
            if axis["multiple_of"] > 1:
                rule = f"a multiple of {axis['multiple_of']} from {rule}"
            raise InputError(port["name"], f"{given}; '{size}' takes {rule}")


def _size_at(size: str, sizes: Mapping[str, int]) -> int | None:
    """An axis, or a sum of axes and numbers, at known sizes; None where one is not known."""
    total = 0
    for part in (each.strip() for each in size.split("+")):
        value = int(part) if part.isdecimal() else sizes.get(part)
        if value is None:
            return None
        total += value
    return total
