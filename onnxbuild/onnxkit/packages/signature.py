"""A model's signature, from which the sources and descriptions of every package are written."""

import keyword
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from onnxbuild.core.axis import Axis, Dimension, shape_at, symbols_of
from onnxbuild.onnxkit.bundles.manifest import Manifest, Value

_WORD = re.compile(r"[A-Za-z0-9]+")
_NOT_SHOWN = re.compile(r"[^\w +*/%().,:-]")
"""Characters of a dimension's name, which an ONNX file may set, that are shown as `?`: they could
end a comment, a line or a code span."""
Style = Literal["snake", "camel", "pascal"]


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output.

    Attributes:
        name: In the graph.
        dtype: As numpy spells it; `string` for text.
        shape: Sizes, axes and sums of them, outermost first; None where the rank is unknown.
        example_shape: Its shape at the example sizes; None where it is unknown.
        labels: Names of classes: of the places along a float output's last axis, or what an output of strings
            holds; empty where there are none.
    """

    name: str
    dtype: str
    shape: tuple[Dimension, ...] | None
    example_shape: tuple[int, ...] | None
    labels: tuple[str, ...] = ()

    @property
    def shape_text(self) -> str:
        """`[batch, 3, 224, 224]`; `[...]` where the rank is unknown. Safe in comments of all languages."""
        return "[...]" if self.shape is None else f"[{', '.join(map(_shown, self.shape))}]"


@dataclass(frozen=True, slots=True)
class ModelSignature:
    """Signature of a variant's model: inputs, outputs, dynamic axes.

    Attributes:
        recipe: Name of the recipe.
        variant: Name of the variant.
        file: The file that a session opens.
        inputs: In the graph's order.
        outputs: In the graph's order.
        axes: Dynamic axes that stand in a shape, as the variant takes them.
        golden: Names of the golden points that the package holds.
    """

    recipe: str
    variant: str
    file: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    axes: tuple[Axis, ...]
    golden: tuple[str, ...] = ()

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """Output -> names of its classes, where it has some."""
        return {port.name: port.labels for port in self.outputs if port.labels}

    @property
    def ports(self) -> tuple[Port, ...]:
        """Inputs, then outputs."""
        return (*self.inputs, *self.outputs)

    def axis(self, name: str) -> Axis | None:
        """The dynamic axis of a name; None if there is none."""
        return next((each for each in self.axes if each.name == name), None)


def _shown(dimension: Dimension) -> str:
    """A dimension without characters that mean something in sources; it opens and ends no comment."""
    plain = _NOT_SHOWN.sub("?", str(dimension))
    return plain.replace("*/", "* /").replace("/*", "/ *")


def signature_of(manifest: Manifest, golden: Iterable[str] = ()) -> ModelSignature:
    """Return a bundle's signature.

    Args:
        manifest: The bundle's, as `read_manifest` gives it.
        golden: Names of the golden points that the package holds.
    """
    axes = tuple(Axis(name, **sizes) for name, sizes in manifest.dynamic_axes.items())
    examples = {axis.name: axis.example for axis in axes}
    inputs, outputs = (
        tuple(_port(each, examples) for each in values)
        for values in (manifest.inputs, manifest.outputs)
    )
    return ModelSignature(
        manifest.name, manifest.variant or "", manifest.file, inputs, outputs, axes, tuple(golden)
    )


def with_labels(signature: ModelSignature, labels: tuple[str, ...]) -> ModelSignature:
    """Return a signature whose float outputs with as many places along their last axis have these labels.

    Args:
        labels: Names of classes, over those that the signature has.
    """
    outputs = tuple(
        replace(port, labels=labels)
        if port.dtype.startswith("float") and (port.shape or ("",))[-1] == len(labels)
        else port
        for port in signature.outputs
    )
    return replace(signature, outputs=outputs)


def _port(value: Value, examples: dict[str, int]) -> Port:
    shape = value.shape
    is_known = shape is not None and all(
        symbol in examples for size in shape for symbol in symbols_of(size)
    )
    example = shape_at(shape, examples) if shape is not None and is_known else None
    return Port(value.name, value.dtype or "", shape, example, value.labels)


def identifiers(
    names: Iterable[str], style: Style, reserved: Collection[str] = ()
) -> dict[str, str]:
    """Return name -> an identifier that Python, JavaScript, C++, Kotlin and Swift accept; no two are equal.

    ASCII letters and digits make its words. A name that begins with a digit, is reserved, or gives what an
    earlier one gave, gets an underscore or a number.

    Args:
        names: Of inputs or outputs, in order.
        style: `input_ids`, `inputIds` or `InputIds`.
        reserved: Words of the language besides Python's.
    """
    given: dict[str, str] = {}
    words = {*reserved, *keyword.kwlist}
    for name in names:
        stem = _in_style(_WORD.findall(name), style) or "value"
        if stem[0].isdigit() or stem in words:
            stem = f"_{stem}"
        found, number = stem, 2
        while found in given.values():
            found, number = f"{stem}_{number}", number + 1
        given[name] = found
    return given


def _in_style(words: list[str], style: Style) -> str:
    if style == "snake":
        return "_".join(word.lower() for word in words)
    capital = [word[:1].upper() + word[1:] for word in words]
    if style == "camel" and capital:
        first = words[0]
        capital[0] = first.lower() if first.isupper() else first[:1].lower() + first[1:]
    return "".join(capital)
