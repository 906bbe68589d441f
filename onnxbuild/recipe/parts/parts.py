"""Valid nodes -> the typed parts of a recipe."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from onnxbuild.catalog import FRONTENDS, MODES, PROGRAM_FORMATS, SECTIONS
from onnxbuild.core.axis import one_spelling
from onnxbuild.core.params import from_json
from onnxbuild.core.recipe import (
    FROM,
    ONNX,
    Axis,
    ConnectedInput,
    DummyInput,
    Entrypoint,
    Format,
    Location,
    Variant,
)
from onnxbuild.core.state import STATE
from onnxbuild.document.node import (
    Member,
    Node,
    Path,
    dotted,
    mapping,
    plain,
    scalar,
    unknown_paths,
)
from onnxbuild.document.parts import Parts, format_nodes, has_onnx
from onnxbuild.expansion.feature import Mode, Section
from onnxbuild.expansion.variants import variant_of
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.recipe.parts.states import named, read_states, written_states
from onnxbuild.recipe.parts.targets import ReadEnvironment, read_targets


def with_mappings(root: Node) -> Node:
    """Return a recipe with each such list written out: `packages: {triton: {}, web: {}}`.

    A list that names one twice, or holds anything but names, is left for the schema to refuse.
    """
    members = {
        key: Member(each.at, _written_out(each.node)) if _takes_names(key) else each
        for key, each in root.members.items()
    }
    return mapping(members, root.at)


def _takes_names(key: str) -> bool:
    return key in SECTIONS and SECTIONS[key].takes_names


def _written_out(node: Node) -> Node:
    names = [item.value for item in node.items if isinstance(item.value, str)]
    if not names or len(set(names)) < len(node.items):
        return node
    return mapping(
        {
            name: Member(item.at, mapping({}, item.at))
            for name, item in zip(names, node.items, strict=True)
        },
        node.at,
    )


DEFAULT_OPSET = 18

ReadEntrypoint = Callable[[Node, Path, "Parts"], Entrypoint | None]


def read_parts(
    root: Node, unsound: set[Path], read: ReadEntrypoint, read_environment: ReadEnvironment
) -> Parts:
    """The typed parts of a rendered recipe.

    Args:
        root: Checked against the schema.
        unsound: Where it has faults.
        read: Reads an entrypoint; None where it has faults.
        read_environment: Reads a target's environment; None where it has faults.
    """
    modules = tuple(name for name, frontend in FRONTENDS.items() if frontend.gives_module)
    parts = Parts(root, unsound | set(unknown_paths(root)), modules)
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
    states = read_states(parts)
    parts.inputs |= {each.name: each for each in states.inputs}
    parts.outputs += states.outputs
    written = [(parts.node(*path), path, name) for path, name in entrypoint_paths()]
    for node, path, name in [*written, *_entrypoints_below(parts)]:
        if node is not None:
            entrypoint = read(node, path, parts)
            if entrypoint is not None:
                parts.entrypoints[name] = entrypoint
    if states.states and "model" in parts.entrypoints:
        parts.entrypoints["model"] = replace(parts.entrypoints["model"], state=states.states)
    return parts


def entrypoint_paths() -> list[tuple[tuple[str, ...], str]]:
    """(path, name) of every key that takes an entrypoint; `model` first."""
    below = [
        ((section.name, key), name)
        for section in SECTIONS.values()
        for key, (name, _) in section.callables.items()
    ]
    return [(("model",), "model"), *below]


def _entrypoints_below(parts: Parts) -> Iterator[tuple[Node, Path, str]]:
    """(value, path, name) of each key at any depth below a section that names a callable or a file."""
    for section in SECTIONS.values():
        node = parts.node(section.name) if section.below else None
        for path, found in _values_below(node, (section.name,)) if node else ():
            form = section.below.get(str(path[-1]))
            if form is not None and (
                bool(found.items) if form == "files" else isinstance(found.value, str)
            ):
                yield found, path, dotted(path)


def _values_below(node: Node, above: Path) -> Iterator[tuple[Path, Node]]:
    below: list[tuple[Path, Node]] = [
        ((*above, key), member.node) for key, member in node.members.items()
    ]
    below += [((*above, number), item) for number, item in enumerate(node.items)]
    for path, each in below:
        yield path, each
        yield from _values_below(each, path)


def plain_mode() -> Mode:
    """Return the mode of a recipe that names none: nothing is rounded."""
    return next(each for each in MODES.values() if each.is_plain)


def tolerances_key() -> str:
    """Return the key below which a variant or a format has tolerances of its own."""
    return next(name for name, each in SECTIONS.items() if each.holds_tolerances)


def variant_nodes(root: Node) -> dict[str, tuple[Location, Node]]:
    """Variant name -> (place of its key, its value), the short forms written out."""
    quantization = root.child("quantization")
    if quantization is None:
        plainest = plain_mode()
        return {plainest.precision: (root.at, scalar(plainest.name, root.at))}
    if isinstance(quantization.value, str):
        mode = MODES.get(quantization.value)
        return {} if mode is None else {mode.precision: (quantization.at, quantization)}
    return {name: (member.at, member.node) for name, member in quantization.members.items()}


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
    own = {key: each for key, each in value.items() if key != FROM}
    arange = {"arange": one_spelling(value["arange"])} if "arange" in value else {}
    return DummyInput(name, **{**own, **lists, **arange, "shape": shape})


def connections(parts: Parts) -> Iterator[ConnectedInput]:
    """Yield the inputs that are outputs of other components, those of a state, too."""
    inputs = parts.node("dummy_inputs")
    for name, member in ({} if inputs is None else inputs.members).items():
        source = member.node.child(FROM)
        if source is not None:
            yield _connected(name, str(source.value), source.at)
    for state in written_states(parts).values():
        if state.source:
            at = parts.at(STATE, state.name, FROM)
            for each in state.tensors():
                yield _connected(each.input, named(state.source, each.of), at)


def _connected(name: str, source: str, at: Location) -> ConnectedInput:
    component, _, output = source.partition(".")
    return ConnectedInput(name, component, output, at)


def _axis(name: str, value: Any) -> Axis:
    return Axis(name, **value)


def _section(section: str, node: Node | None) -> object:
    written = {} if node is None else plain(node)
    known = SECTIONS[section]
    if isinstance(written, str):
        written = {known.short: written}
    own = {k: v for k, v in written.items() if k not in known.callables}
    return from_json(known.options, own, section)


def _formats(parts: Parts) -> dict[str, Format]:
    made = {}
    for name, (at, node) in format_nodes(parts.root).items() if parts.sound("formats") else ():
        if name == ONNX:
            continue
        written = {} if node is None else dict(plain(node))
        where = f"formats.{name}"
        tolerances = written.pop(tolerances_key(), None)
        made[name] = Format(
            name,
            from_json(PROGRAM_FORMATS[name].options, written, where),
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
    mode = MODES[written["mode"]]
    where = f"quantization.{name}"
    options: object = None
    if mode.options is not None:
        known = {each.name for each in fields(mode.options)}
        options = from_json(mode.options, {k: v for k, v in written.items() if k in known}, where)
    sections: dict[str, object] = {}
    own = tolerances_key()
    if own in written:
        sections[own] = from_json(VariantTolerances, written[own], where)
    for section in SECTIONS.values():
        if section.by_variant and section.name in written and parts.sound(section.name):
            below = parts.node(section.name)
            sections[section.name] = _overlaid(section, below, written[section.name], where)
    return variant_of(name, mode, options, sections=sections, location=at)


def _overlaid(section: Section, recipe: Node | None, variant: Any, where: str) -> object:
    """A variant's own section over the recipe's."""
    below = {} if recipe is None else plain(recipe)
    below, over = ({section.short: v} if isinstance(v, str) else v for v in (below, variant))
    return from_json(section.options, {**below, **over}, where)
