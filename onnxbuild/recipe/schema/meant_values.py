"""Say what to type for a value that another tool, or a shorter form, would take."""

from __future__ import annotations

import re
from collections.abc import Sequence

from onnxbuild.catalog import MODES
from onnxbuild.document.faults import Fault, show
from onnxbuild.document.node import Node, Path, dotted, locate_key, members_at, node_at, plain
from onnxbuild.recipe.parts.dimensions import axis_meant, missing_size, symbol_for
from onnxbuild.recipe.schema.aliases import meaning
from onnxbuild.recipe.schema.phrases import inline
from onnxbuild.recipe.schema.places import is_list_of_options

_DTYPES = (
    "float32",
    "float16",
    "float64",
    "int64",
    "int32",
    "int8",
    "uint8",
    "bool",
    "bfloat16",
    "int16",
)
_DTYPE_AND_SHAPE = re.compile(r"([\w.]+)\s*[\[(](.*?),?\s*[\])]")
_PAIR = 2
_USUAL_DTYPE, _USUAL_SHAPE = "float32", "[batch, 128]"


def value_meant(found: object, root: Node, path: Path, place: str) -> str:
    """The fix for a value that is not of the form that is expected; empty for those not known here.

    Args:
        found: The value at `path`.
        root: The recipe.
        path: Of the faulty value.
        place: Where it belongs if it is an option in place of a name; empty for others.
    """
    match path:
        case ("dummy_inputs",):
            names = found if isinstance(found, (list, tuple)) else ["INPUT"]
            return _inputs(list(names))
        case ("quantization",) if found == {}:
            return "write `{fp32: none, int8: dynamic}`"
        case ("quantization",) if isinstance(found, (list, tuple)):
            return _variants(list(found))
        case ("quantization", str()) if "mode" in members_at(root, ("quantization",)):
            return "put the options under a variant's name: " + variant_below_name(root)
        case _ if place:
            return f"move it to `{place}`"
        case ("dummy_inputs", str(), "shape", int()) if isinstance(found, (list, tuple)):
            return f"write `{', '.join(map(str, found))}`" if _are_dimensions(found) else ""
        case ("dummy_inputs", str(), "shape", int()) if isinstance(found, str) and " " in found:
            return f"write `{', '.join(found.split())}`" if "+" not in found else ""
        case ("dummy_inputs", str()) if not is_list_of_options(found, path):
            return _input(found)
        case _:
            return symbol_for(found, root, path) or axis_meant(found, path)


def is_next_to_mode(root: Node, path: Path) -> bool:
    """Return whether a value stands next to the mode of a variant, which has a fault of its own, as if it were a variant."""
    mode = node_at(root, ("quantization", "mode"))
    return path[:1] == ("quantization",) and mode is not None and isinstance(mode.value, str)


def example_meant(key: str, root: Node, path: Path) -> str:
    """A plausible value of a key that is missing; empty for those not known here.

    Args:
        key: The one that is missing.
        root: The recipe.
        path: Of the mapping that lacks it.
    """
    match path:
        case ("quantization", str() as variant) if key == "mode":
            return meaning(variant, MODES)
        case _:
            return missing_size(key, root, path)


def variant_below_name(root: Node) -> str:
    """The form of `quantization` with the mode in it as that of a variant with a name.

    Args:
        root: A recipe whose `quantization` has the key `mode`.
    """
    quantization = root.child("quantization")
    node = None if quantization is None else quantization.child("mode")
    word = "" if node is None or not isinstance(node.value, str) else node.value
    mode = MODES.get(meaning(word, MODES))
    named = ("NAME", "MODE") if mode is None else (mode.precision, mode.name)
    others = ", ..." if len(members_at(root, ("quantization",))) > 1 else ""
    return f"`quantization: {{{named[0]}: {{mode: {named[1]}{others}}}}}`"


def _input(found: object) -> str:
    """A list is taken for the shape of an input, a word for its dtype, both for both."""
    written = _DTYPE_AND_SHAPE.fullmatch(found) if isinstance(found, str) else None
    if written:
        found = [written[1], re.split(r"\s*,\s*", written[2])]
    if isinstance(found, (list, tuple)) and len(found) == _PAIR:
        words = [meaning(each, _DTYPES) for each in found if isinstance(each, str)]
        shapes = [each for each in found if isinstance(each, (list, tuple))]
        if words and words[0] and shapes and _are_dimensions(shapes[0]):
            return f"write `{{dtype: {words[0]}, shape: {_listed(shapes[0])}}}`"
    if isinstance(found, (list, tuple)) and _are_dimensions(found):
        return f"write `{{dtype: {_USUAL_DTYPE}, shape: {_listed(found)}}}`"
    if isinstance(found, str):
        dtype = meaning(found, _DTYPES) or _USUAL_DTYPE
        return f"write `{{dtype: {dtype}, shape: {_USUAL_SHAPE}}}`"
    return ""


def _are_dimensions(found: Sequence[object]) -> bool:
    return all(type(each) in (int, str) for each in found)


def _listed(found: Sequence[object]) -> str:
    return f"[{', '.join(map(str, found))}]"


def input_meant(root: Node, path: Path) -> Fault | None:
    """Return the one fault of an input whose dtype and shape are exchanged, or whose name is a value; None for other values.

    Args:
        root: The recipe.
        path: Of a faulty value.
    """
    if path[:1] != ("dummy_inputs",):
        return None
    node = node_at(root, path[:-1])
    found = {} if node is None else plain(node)
    if node is None or not isinstance(found, dict):
        return None
    match path, found:
        case (_, str(), "dtype" | "shape"), {"dtype": list(shape), "shape": str(dtype)}:
            dtype = meaning(dtype, _DTYPES)
            if not dtype or not _are_dimensions(shape):
                return None
            mended = {**found, "dtype": dtype, "shape": shape}
            what = f"{dotted(path[:-1])} has its shape as `dtype`, and its dtype as `shape`"
            return Fault(what, node.at, f"write `{inline(mended)}`", path)
        case (_, str()), {"name": str(name), "dtype": str(), "shape": list()}:
            mended = {name: {key: each for key, each in found.items() if key != "name"}}
            what = "dummy_inputs has the keys of an input; expected the name of each as a key"
            fix = f"write `dummy_inputs: {inline(mended)}`"
            return Fault(what, locate_key(root, path[:-1]), fix, path)
        case _:
            return None


def mode_as_key(root: Node, path: Path) -> Fault | None:
    """Return the fault of a variant with its mode as a key, as in `{static: {per_channel: true}}`; None for others.

    Args:
        root: The recipe.
        path: Of a mapping without a mode.
    """
    node = node_at(root, path) if path[:1] == ("quantization",) and len(path) == _PAIR else None
    found = {} if node is None else plain(node)
    modes = [key for key in found if meaning(key, MODES)]
    if node is None or len(modes) != 1:
        return None
    below = found.pop(modes[0])
    mode = meaning(modes[0], MODES)
    options = {**(below if isinstance(below, dict) else {}), **found}
    mended = inline({"mode": mode, **options}) if options else mode
    what = f"{dotted(path)} has its mode {show(modes[0])} as a key"
    return Fault(what, node.at, f"write `{mended}`", path)


def _inputs(names: list[object]) -> str:
    """Names of inputs, each with what stands next to its name or a usual dtype and shape; empty if one has no name."""
    if names and all(isinstance(each, dict) and type(each.get("name")) is str for each in names):
        listed = [dict(each) for each in names if isinstance(each, dict)]
        return f"write `{inline({each.pop('name'): each for each in listed})}`"
    written = [
        f"{name}: {{dtype: {_USUAL_DTYPE}, shape: {_USUAL_SHAPE}}}"
        for name in names
        if isinstance(name, str)
    ]
    return f"write `{{{', '.join(written)}}}`" if len(written) == len(names) else ""


def _variants(found: list[object]) -> str:
    """A list of modes as variants that are named as they stand there; empty if one is no mode."""
    words = [each for each in found if isinstance(each, str)]
    modes = {word: meaning(word, MODES) for word in words}
    if not words or len(words) < len(found) or not all(modes.values()):
        return ""
    return f"write `{{{', '.join(f'{word}: {mode}' for word, mode in modes.items())}}}`"
