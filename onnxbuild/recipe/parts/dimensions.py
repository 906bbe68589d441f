"""Suggest what other tools write in another way: a symbol for an unknown size in a shape, the sizes of an axis."""

from __future__ import annotations

import re
from collections.abc import Mapping

from onnxbuild.document.faults import Fault
from onnxbuild.document.node import Node, Path, locate_key, members_at

_NAMES = {
    2: ("batch", "sequence"),
    3: ("batch", "sequence", "width"),
    4: ("batch", "channels", "height", "width"),
    5: ("batch", "channels", "depth", "height", "width"),
}
"""Rank -> what its axes are most often."""

USUAL_NAMES = frozenset(name for names in _NAMES.values() for name in names)
"""Names of axes that are no slips of the pen."""


def symbol_for(found: object, root: Node, path: Path) -> str:
    """The fix for a dimension that stands for any size; empty for all other faults.

    Args:
        found: The value at `path`.
        root: The recipe.
        path: Of the faulty value.
    """
    symbol = symbol_meant(found, root, path)
    axes = root.child("dynamic_axes")
    if not symbol or (axes is not None and symbol in axes.members):
        return symbol and f"write `{symbol}`"
    return f"write `{symbol}`, and add `{symbol}: {axis_for({})}` to dynamic_axes"


def symbol_meant(found: object, root: Node, path: Path) -> str:
    """The symbol for a dimension that stands for any size; empty for all other dimensions.

    Args:
        found: The value at `path`.
        root: The recipe.
        path: Of the dimension.
    """
    match path:
        case ("dummy_inputs", str() as name, "shape", int() as n):
            pass
        case _:
            return ""
    unknown = (isinstance(found, int) and found <= 0) or (
        isinstance(found, str) and _is_any(found)
    )
    if found is not None and not unknown:
        return ""
    shape = root.child("dummy_inputs")
    shape = None if shape is None else shape.child(name)
    shape = None if shape is None else shape.child("shape")
    others = [] if shape is None else [item.value for item in shape.items]
    usual = ("batch",) if n == 0 else _NAMES.get(len(others), ())
    return usual[n] if n < len(usual) and usual[n] not in others else f"size_{n}"


def axis_for(found: Mapping[str, object]) -> str:
    """Sizes of an axis as a recipe has them, `{min: 1, max: 64, example: 2}`.

    Args:
        found: Those that are there; what is no size counts as missing.
    """
    sizes = axis_sizes(found)
    return f"{{{', '.join(f'{key}: {size}' for key, size in sizes.items())}}}"


def axis_sizes(found: Mapping[str, object]) -> dict[str, int]:
    """The sizes `min`, `max` and `example` of an axis, with plausible ones for those that are missing.

    Args:
        found: Those that are there, and `multiple_of`; what is no size counts as missing.
    """
    known = {key: size for key, size in found.items() if type(size) is int and size >= 0}
    step = known.get("multiple_of") or 1
    given = [known[key] for key in ("min", "max", "example") if key in known]
    least = known.get("min", min([step, *given]))
    most = known.get("max", max([64 * step, *(2 * size for size in given)]))
    example = known.get("example", max(least, min(2 * step, most)))
    return {"min": least, "max": most, "example": example}


def axis_meant(found: object, path: Path) -> str:
    """The fix for an axis that is no mapping: a size, a list of sizes, a word; empty for all other faults.

    Args:
        found: The value at `path`.
        path: Of the faulty value.
    """
    match path:
        case ("dynamic_axes",):
            names = found if isinstance(found, (list, tuple)) else ["batch"]
            axes = [f"{each}: {axis_for({})}" for each in names if isinstance(each, str)]
            return f"write `{{{', '.join(axes)}}}`" if len(axes) == len(names) else ""
        case ("dynamic_axes", str()) if not _has_mappings(found):
            pass
        case _:
            return ""
    text = "" if isinstance(found, int) and found <= 0 else str(found)
    match [int(each) for each in re.findall(r"[0-9]{1,9}", text)]:
        case [most]:
            return f"write `{axis_for({'max': most})}`"
        case [least, most]:
            return f"write `{axis_for({'min': least, 'max': most})}`"
        case [least, example, most]:
            return f"write `{axis_for({'min': least, 'example': example, 'max': most})}`"
        case _:
            return f"write `{axis_for({})}`"


def _has_mappings(found: object) -> bool:
    return isinstance(found, (list, tuple)) and any(isinstance(each, dict) for each in found)


def missing_size(key: str, root: Node, path: Path) -> str:
    """A plausible size for an axis that lacks one; empty for all other faults.

    Args:
        key: The one that is missing.
        root: The recipe.
        path: Of the mapping that lacks it.
    """
    match path:
        case ("dynamic_axes", str() as name):
            axes = root.child("dynamic_axes")
            axis = None if axes is None else axes.child(name)
            members = {} if axis is None else axis.members
            return str(
                axis_sizes({each: found.node.value for each, found in members.items()})[key]
            )
        case _:
            return ""


def is_input_for_axis(root: Node, path: Path) -> bool:
    """Return whether `dynamic_axes` has an input there, as torch.onnx.export takes it.

    Args:
        root: The recipe.
        path: Of a member of `dynamic_axes`.
    """
    return path[:-1] == ("dynamic_axes",) and path[-1] in members_at(root, ("dummy_inputs",))


def input_for_axis(root: Node, path: Path) -> Fault:
    """The fault of an input in place of an axis.

    Args:
        root: The recipe.
        path: Of the input in `dynamic_axes`.
    """
    what = f"'{path[-1]}' in dynamic_axes is an input; expected the name of an axis"
    fix = f"name axes, such as `batch: {axis_for({})}`; the input's `shape` says where they are"
    return Fault(what, locate_key(root, path), fix, path)


def _is_any(text: str) -> bool:
    return text.lower() in {"none", "null", "?", "*", "any", "dynamic", "-1", ""} or not re.search(
        r"[A-Za-z1-9]", text
    )
