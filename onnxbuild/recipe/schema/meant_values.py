"""Say what to type for a value that another tool, or a shorter form, would take."""

from __future__ import annotations

from onnxbuild.catalog import MODES
from onnxbuild.document.node import Node, Path, members_at, node_at
from onnxbuild.recipe.parts.dimensions import axis_meant, missing_size, symbol_for
from onnxbuild.recipe.schema.aliases import meaning
from onnxbuild.recipe.schema.places import is_list_of_options

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
    """A list is taken for the shape of an input, a word for its dtype."""
    if isinstance(found, (list, tuple)) and all(type(each) in (int, str) for each in found):
        return f"write `{{dtype: {_USUAL_DTYPE}, shape: [{', '.join(map(str, found))}]}}`"
    if isinstance(found, str):
        known = ("float32", "float16", "float64", "int64", "int32", "int8", "uint8", "bool")
        dtype = meaning(found, known) or _USUAL_DTYPE
        return f"write `{{dtype: {dtype}, shape: {_USUAL_SHAPE}}}`"
    return ""


def _inputs(names: list[object]) -> str:
    """Names of inputs with a usual dtype and shape; empty if one is no name."""
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
