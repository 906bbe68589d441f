"""The components of a pipeline, called by name; and samples in files. A package has a copy: NumPy is all that it imports."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Arrays = Mapping[str, np.ndarray]
    Call = Callable[[str, dict[str, np.ndarray]], Arrays]
    """(component, input -> array) -> output -> array."""

VALUES_FILE, ARRAYS_FILE = "samples.json", "samples.npz"
_SCALARS = (str, int, float, bool, type(None))


class PartsError(Exception):
    """A component is called in a way that it can't be; or a sample can't be kept in a file.

    Attributes:
        fix: Text to type.
    """

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.fix = fix


class PipelineParts:
    """The components of a pipeline: `parts.NAME(...)` takes arrays by name or by position and returns output -> array.

    Args:
        inputs: Component -> its inputs in order, each with `name`, `dtype` and `shape`.
        call: Runs one of them.
    """

    def __init__(self, inputs: Mapping[str, Sequence[Mapping[str, Any]]], call: Call) -> None:
        self._inputs = inputs
        self._call = call

    def __getattr__(self, name: str) -> Callable[..., Arrays]:
        if name.startswith("__"):  # asked by `copy` and its like
            raise AttributeError(name)
        if name not in self._inputs:
            near = difflib.get_close_matches(name, self._inputs, n=1, cutoff=0)[0]
            known = ", ".join(self._inputs)
            raise PartsError(f"there is no component '{name}': {known}", f"write `parts.{near}`")

        def part(*args: Any, **arrays: Any) -> Arrays:
            return self._call(name, _feeds(name, self._inputs[name], args, arrays))

        return part


def _feeds(
    part: str, inputs: Sequence[Mapping[str, Any]], args: Sequence[Any], arrays: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """The arrays of a call, in the order of the inputs."""
    names = [each["name"] for each in inputs]
    shown = f"`parts.{part}({', '.join(names)})`"
    if len(args) > len(names):
        raise PartsError(
            f"'{part}' takes {len(names)} arrays; it is given {len(args)}", f"write {shown}"
        )
    given = dict(zip(names, args, strict=False))
    for name in arrays:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0)
            raise PartsError(
                f"'{part}' has no input '{name}': {', '.join(names)}",
                f"write `{near[0]}` in place of `{name}`" if near else f"write {shown}",
            )
        if name in given:
            raise PartsError(f"'{part}' is given '{name}' twice", f"write {shown}")
    given |= arrays
    for name in names:
        if name not in given:
            raise PartsError(f"'{part}' is called without '{name}'", f"write {shown}")
    return {each["name"]: _array(part, each, given[each["name"]]) for each in inputs}


def _array(part: str, port: Mapping[str, Any], value: Any) -> np.ndarray:
    import numpy as np

    name, dtype = port["name"], "str" if port["dtype"] == "string" else port["dtype"]
    if not isinstance(value, (np.ndarray, np.generic, list, tuple, int, float, bool)):
        raise PartsError(
            f"'{part}' takes '{name}' as an array; it is given a {type(value).__name__}",
            "convert it with `np.asarray(...)`; of what a component returns, take an output by its name",
        )
    array = np.asarray(value)
    if dtype not in ("bfloat16", "str") and array.dtype.name != dtype:
        raise PartsError(
            f"'{part}' takes '{name}' as {dtype}; it is given {array.dtype.name}",
            f"write `{name}=... .astype(np.{dtype})`",
        )
    if array.ndim != len(port["shape"]):
        raise PartsError(
            f"'{part}' takes '{name}' with {len(port['shape'])} axes, [{', '.join(map(str, port['shape']))}]; it is "
            f"given {array.ndim}",
            "reshape it; `array[None]` adds an axis",
        )
    found: np.ndarray = np.array(array, order="C")  # a callable may change its own in place
    return found


def write_values(folder: Path, values: Sequence[object]) -> None:
    """Write samples: arrays, numbers, texts, and lists, tuples and mappings of these.

    Raises:
        PartsError: A sample holds something else.
    """
    import numpy as np

    arrays: dict[str, np.ndarray] = {}
    trees = [_tree(value, arrays) for value in values]
    (folder / VALUES_FILE).write_text(json.dumps(trees) + "\n", encoding="utf-8", newline="\n")
    np.savez(folder / ARRAYS_FILE, **arrays)  # type: ignore[arg-type]


def _tree(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    import numpy as np

    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufcU":
        arrays[str(len(arrays))] = np.asarray(value)
        return {"array": str(len(arrays) - 1)}
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Mapping):
        return {"mapping": [[_tree(k, arrays), _tree(v, arrays)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_tree(each, arrays) for each in value]}
    raise PartsError(
        f"a sample holds a {type(value).__module__}.{type(value).__qualname__}",
        "yield arrays of NumPy, numbers, texts, and lists, tuples and mappings of these",
    )


def read_values(folder: Path) -> list[Any]:
    """Return the samples that `write_values` wrote."""
    import numpy as np

    trees = json.loads((folder / VALUES_FILE).read_text(encoding="utf-8"))
    with np.load(folder / ARRAYS_FILE, allow_pickle=False) as arrays:
        return [_value(tree, arrays) for tree in trees]


def _value(tree: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if not isinstance(tree, dict):
        return tree
    ((kind, content),) = tree.items()
    if kind == "array":
        return arrays[content]
    if kind == "mapping":
        return {_value(k, arrays): _value(v, arrays) for k, v in content}
    return (tuple if kind == "tuple" else list)(_value(each, arrays) for each in content)
