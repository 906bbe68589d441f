"""Recipe keys for a TorchScript model, which declares names of inputs, but no types and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.data.completed_axes import completed_axes, mapping_in, sizes_in
from onnxbuild.onnxkit.programs.torchscript_outline import Argument


def recipe_of_torchscript(
    name: str, arguments: Iterable[Argument], written: Mapping[str, Any]
) -> dict[str, Any]:
    """The keys of a recipe that need not be written: `dynamic_axes`.

    Args:
        name: The file's, for messages.
        arguments: Forward's; none where its code can't be followed.
        written: The recipe as it is written, rendered; values may be anything.

    Raises:
        SourceError: Inputs are not written as forward takes them.
    """
    inputs = mapping_in(written, "dummy_inputs")
    _check(name, tuple(arguments), inputs)
    shapes = [sizes_in(mapping_in(inputs, each).get("shape")) for each in inputs]
    completed = completed_axes(shapes, mapping_in(written, "dynamic_axes"))
    return {"dynamic_axes": completed} if completed else {}


def _check(name: str, arguments: tuple[Argument, ...], inputs: Mapping[str, Any]) -> None:
    tensors = [each for each in arguments if each.is_tensor]
    fixed = [each for each in arguments if not each.is_tensor and not each.has_default]
    if fixed:
        raise SourceError(
            f"forward of {name} takes `{fixed[0].name}: {fixed[0].type}`; a recipe feeds tensors",
            "name a part that takes tensors alone (`submodule: NAME` next to `torchscript`), or write a callable "
            f"that returns a module which loads it and passes `{fixed[0].name}` on",
        )
    known = [each.name for each in tensors]
    missing = [each.name for each in tensors if each.name not in inputs and not each.has_default]
    if missing:
        given = ", ".join(f"`{each}`" for each in missing)
        lines = ", ".join(f"{each}: {{dtype: float32, shape: [batch, ...]}}" for each in missing)
        raise SourceError(
            f"forward of {name} takes {given}, and TorchScript says no types and shapes",
            f"write `dummy_inputs: {{{lines}}}`",
            *(("dummy_inputs",) if inputs else ()),
        )
    for each in inputs if known else ():
        if each not in known:
            near = did_you_mean(str(each), known)
            raise SourceError(
                f"forward of {name} takes no tensor '{each}'",
                f"{near} it takes {', '.join(known)}".strip(),
                "dummy_inputs",
                str(each),
            )
