"""Valid nodes -> the typed parts of a recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

from onnxbuild.catalog import CATALOG, KIND_OF_FORMAT, KIND_OF_MODE
from onnxbuild.core.axis import one_spelling
from onnxbuild.core.params import from_json
from onnxbuild.core.recipe import (
    ONNX,
    PRECISION_OF_MODE,
    Axis,
    DummyInput,
    Entrypoint,
    Format,
    Location,
    Mode,
    Variant,
)
from onnxbuild.core.target import Target, TargetGates
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.recipe.parts.keys import CALLABLES
from onnxbuild.recipe.parts.release_options import ReleaseOptions
from onnxbuild.recipe.parts.target_options import TargetOptions
from onnxbuild.recipe.parts.targets import ReadEnvironment, read_targets
from onnxbuild.recipe.yaml.node import Node, Path, plain, scalar, unknown_paths

SECTIONS: Mapping[str, type] = {
    **{
        kind.section: kind.options
        for kind in CATALOG.values()
        if kind.section and kind.options is not None
    },
    "target": TargetOptions,
    "release": ReleaseOptions,
}

DEFAULT_OPSET = 18

ReadEntrypoint = Callable[[Node, Path, "Parts"], Entrypoint | None]


@dataclass(slots=True)
class Parts:
    """The parts of a recipe that could be read; parts with faults are left out.

    Attributes:
        unsound: Paths with faults, on whose absence nothing may be concluded.
    """

    root: Node
    unsound: set[Path] = field(default_factory=set)
    inputs: dict[str, DummyInput] = field(default_factory=dict)
    axes: dict[str, Axis] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    variants: dict[str, Variant] = field(default_factory=dict)
    formats: dict[str, Format] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    gates: dict[str, TargetGates] = field(default_factory=dict)
    sections: dict[str, object] = field(default_factory=dict)
    entrypoints: dict[str, Entrypoint] = field(default_factory=dict)

    def sound(self, *path: str | int) -> bool:
        """Whether nothing at, above or below `path` has a fault."""
        return not any(bad[: len(path)] == path or path[: len(bad)] == bad for bad in self.unsound)

    def node(self, *path: str) -> Node | None:
        """The value at `path`, where there is one."""
        node: Node | None = self.root
        for key in path:
            node = None if node is None else node.child(key)
        return node


def read_parts(
    root: Node,
    unsound: set[Path],
    read: ReadEntrypoint,
    read_environment: ReadEnvironment,
) -> Parts:
    """The typed parts of a rendered recipe.

    Args:
        root: Checked against the schema.
        unsound: Where it has faults.
        read: Reads an entrypoint; None where it has faults.
        read_environment: Reads a target's environment; None where it has faults.
    """
    parts = Parts(root, unsound | set(unknown_paths(root)))
    parts.inputs = _named(parts, "dummy_inputs", _input)
    parts.axes = _named(parts, "dynamic_axes", _axis)
    outputs = parts.node("outputs")
    if outputs is not None and parts.sound("outputs"):
        parts.outputs = tuple(plain(outputs))
    for section in SECTIONS:
        if parts.sound(section):
            parts.sections[section] = _section(section, parts.node(section))
    parts.formats = _formats(parts)
    parts.variants = _variants(parts) if has_onnx(root) else {}
    if all(parts.sound(key) for key in ("providers", "dummy_inputs", "dynamic_axes")):
        parts.targets, parts.gates = read_targets(
            parts.node("providers"),
            parts.inputs,
            parts.axes,
            lambda node, path: read(node, path, parts),
            read_environment,
        )
    for path, name in entrypoint_paths():
        node = parts.node(*path)
        if node is not None:
            entrypoint = read(node, path, parts)
            if entrypoint is not None:
                parts.entrypoints[name] = entrypoint
    return parts


def entrypoint_paths() -> list[tuple[tuple[str, ...], str]]:
    """(path, name) of every key that takes an entrypoint; `model` first."""
    below = [
        ((section, key), name)
        for section, keys in CALLABLES.items()
        for key, (name, _) in keys.items()
    ]
    return [(("model",), "model"), *below]


def variant_nodes(root: Node) -> dict[str, tuple[Location, Node]]:
    """Variant name -> (place of its key, its value), the short forms written out."""
    quantization = root.child("quantization")
    if quantization is None:
        return {"fp32": (root.at, scalar("none", root.at))}
    if isinstance(quantization.value, str):
        precision = PRECISION_OF_MODE.get(quantization.value)
        return {} if precision is None else {precision: (quantization.at, quantization)}
    return {name: (member.at, member.node) for name, member in quantization.members.items()}


def format_nodes(root: Node) -> dict[str, tuple[Location, Node | None]]:
    """Format name -> (where it is asked for, its options if they are written)."""
    formats = root.child("formats")
    if formats is None:
        return {ONNX: (root.at, None)}
    if formats.items:
        return {str(item.value): (item.at, None) for item in formats.items}
    return {name: (member.at, member.node) for name, member in formats.members.items()}


def has_onnx(root: Node) -> bool:
    """Whether variants are made: `formats` names onnx, or is not written, or can't be read."""
    formats = format_nodes(root)
    return ONNX in formats or not formats


def _named(parts: Parts, key: str, make: Callable[[str, Any], Any]) -> dict[str, Any]:
    node = parts.node(key)
    if node is None:
        return {}
    return {
        name: make(name, plain(member.node))
        for name, member in node.members.items()
        if parts.sound(key, name)
    }


def _input(name: str, value: Any) -> DummyInput:
    lists = {key: tuple(each) for key, each in value.items() if isinstance(each, list)}
    shape = tuple(map(one_spelling, value["shape"]))
    return DummyInput(name, **{**value, **lists, "shape": shape})


def _axis(name: str, value: Any) -> Axis:
    return Axis(name, **value)


def _section(section: str, node: Node | None) -> object:
    written = {} if node is None else plain(node)
    if isinstance(written, str):
        written = {"level": written}  # `optimize: none`
    own = {k: v for k, v in written.items() if k not in CALLABLES.get(section, {})}
    return from_json(SECTIONS[section], own, section)


def _formats(parts: Parts) -> dict[str, Format]:
    made = {}
    for name, (at, node) in format_nodes(parts.root).items() if parts.sound("formats") else ():
        if name == ONNX:
            continue
        kind = KIND_OF_FORMAT[name]
        assert kind.options is not None
        written = {} if node is None else dict(plain(node))
        where = f"formats.{name}"
        tolerances = written.pop("validate", None)
        made[name] = Format(
            name,
            from_json(kind.options, written, where),
            None if tolerances is None else from_json(VariantTolerances, tolerances, where),
            at,
        )
    return made


def _variants(parts: Parts) -> dict[str, Variant]:
    made = {}
    for name, (at, node) in variant_nodes(parts.root).items():
        path = ("quantization", name) if parts.node("quantization", name) else ("quantization",)
        if parts.sound(*path):
            made[name] = _variant(parts, name, at, plain(node))
    return made


def _variant(parts: Parts, name: str, at: Location, value: Any) -> Variant:
    written = {"mode": value} if isinstance(value, str) else value
    mode = cast("Mode", written["mode"])
    where = f"quantization.{name}"
    kind = KIND_OF_MODE.get(mode)
    options: object = None
    if kind is not None and kind.options is not None:
        known = {each.name for each in fields(kind.options)}
        options = from_json(kind.options, {k: v for k, v in written.items() if k in known}, where)
    sections: dict[str, object] = {}
    if "validate" in written:
        sections["validate"] = from_json(VariantTolerances, written["validate"], where)
    for section in ("optimize", "session"):
        if section in written and parts.sound(section):
            below = parts.node(section)
            sections[section] = _overlaid(section, below, written[section], where)
    return Variant(name, mode, options, sections, at)


def _overlaid(section: str, recipe: Node | None, variant: Any, where: str) -> object:
    """A variant's own section over the recipe's."""
    below = {} if recipe is None else plain(recipe)
    below, over = ({"level": v} if isinstance(v, str) else v for v in (below, variant))
    return from_json(SECTIONS[section], {**below, **over}, where)
