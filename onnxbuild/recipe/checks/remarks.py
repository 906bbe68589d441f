"""Remarks on what is allowed and usually a mistake; and points whose inputs do not fit into memory."""

from collections.abc import Iterator, Mapping
from math import prod

from onnxbuild.catalog import PACKAGE_FORMATS, all_features
from onnxbuild.core.axis import Axis, Point, shape_at
from onnxbuild.core.errors import RecipeError
from onnxbuild.core.recipe import Location, Recipe
from onnxbuild.core.sizes import size_text
from onnxbuild.document.faults import Remark
from onnxbuild.expansion.requested import PACKAGES, PackagesOptions, named_bundles
from onnxbuild.providers import named

_BYTES = {"float32": 4, "float16": 2, "float64": 8, "int64": 8, "int32": 4, "int16": 2}
_GIB = 1 << 30
_COPIES = 2
"""numpy's array and PyTorch's, at the least; what the model computes comes on top."""

_COMFORTABLE = 100
"""A model's own values take many times what its inputs take: this is what a proposed `max` leaves."""


def doubts_of(recipe: Recipe) -> Iterator[Remark]:
    """Yield a sentence for each variant that a target's kernels make no use of.

    Sources of the providers' remarks: ONNX Runtime's page on quantization (which formats run on which
    hardware), and its operator tables: MatMulInteger, DynamicQuantizeLinear and MatMulNBits by provider.
    """
    for target in recipe.targets:
        for variant in recipe.variants:
            why = named(target.chain[0].provider).remark(variant.mode, variant.options)
            if why:
                text = f"{recipe.name}: variant '{variant.name}' on target '{target.name}': {why}"
                yield Remark(text, variant.location)


def left_out_packages(recipe: Recipe) -> Iterator[Remark]:
    """Yield a remark for each format that is not made of all bundles, where `variants` names none."""
    section = recipe.sections.get(PACKAGES)
    if not isinstance(section, PackagesOptions) or section.variants:
        return
    variants = [each.name for each in recipe.variants]
    bundles = list(named_bundles(recipe.sections.values(), variants, recipe.inputs))
    for form in section.requested:
        refused = {each.name: PACKAGE_FORMATS[form].refuses(each) for each in bundles}
        for why in dict.fromkeys(why for why in refused.values() if why):
            names = ", ".join(name for name, each in refused.items() if each == why)
            yield Remark(f"{recipe.name}: no `{form}` package is made of {names}: {why}")


def input_bytes(recipe: Recipe, sizes: Mapping[str, int]) -> int:
    """Bytes of one set of inputs."""
    return sum(
        prod(shape_at(each.shape, sizes)) * _BYTES.get(each.dtype, 1) for each in recipe.inputs
    )


def point_faults(recipe: Recipe, memory_bytes: int) -> Iterator[RecipeError]:
    """The points whose inputs do not fit into memory, with the axis to narrow.

    Args:
        memory_bytes: What the build may use.
    """
    for point in _points(recipe):
        needed = _COPIES * input_bytes(recipe, point.sizes)
        if needed > memory_bytes:
            axis = _largest(recipe, point)
            most = _fitting(recipe, axis, point, memory_bytes // _COMFORTABLE)
            yield RecipeError(
                f"point '{point.name}' ({_shown(point)}) takes {size_text(needed)} for its "
                f"inputs alone; {size_text(memory_bytes)} may be used",
                where=str(_location(recipe, axis)),
                fix=f"write `max: {most}` for axis '{axis.name}'"
                if point.sizes[axis.name] > most
                else f"write smaller sizes into the fixed part of the shapes with '{axis.name}'",
            )


def point_remarks(recipe: Recipe) -> Iterator[Remark]:
    """The points whose inputs take a gigabyte or more."""
    for point in _points(recipe):
        size = input_bytes(recipe, point.sizes)
        if size >= _GIB:
            axis = _largest(recipe, point)
            text = (
                f"point '{point.name}' ({_shown(point)}) takes "
                f"{size_text(size)} for its inputs alone, and what the model computes comes on "
                f"top; a lesser `max` for axis '{axis.name}' makes it smaller"
            )
            yield Remark(text, _location(recipe, axis))


def _points(recipe: Recipe) -> Iterator[Point]:
    for feature in all_features():
        yield from feature.points(recipe)


def _largest(recipe: Recipe, point: Point) -> Axis:
    """The axis that is farthest above its example."""
    return max(recipe.axes, key=lambda axis: point.sizes[axis.name] / axis.example)


def _fitting(recipe: Recipe, axis: Axis, point: Point, most_bytes: int) -> int:
    """The greatest power of two (times the axis's step) that takes so many bytes; its example at least."""
    size = axis.multiple_of
    while input_bytes(recipe, {**point.sizes, axis.name: 2 * size}) <= most_bytes:
        size *= 2
    return max(size, axis.example, axis.min)


def _shown(point: Point) -> str:
    return ", ".join(f"{name}={size}" for name, size in point.sizes.items())


def _location(recipe: Recipe, axis: Axis) -> Location:
    lines = recipe.lines
    key = f"dynamic_axes.{axis.name}.max"
    return lines.get(key, lines.get("dynamic_axes", recipe.location))
