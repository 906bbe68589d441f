"""Check that a `session` names existing axes, sizes and ONNX Runtime config entries."""

from collections.abc import Iterator, Mapping
from typing import Any

from onnxbuild.core.recipe import Location, Recipe
from onnxbuild.document.faults import Fault, Remark, hinted, nearest
from onnxbuild.document.node import Path, dotted
from onnxbuild.document.parts import Parts
from onnxbuild.onnxkit.sessions.settings import (
    FILE_KEYS,
    KNOWN_KEYS,
    OWN_KEYS,
    SessionOptions,
    is_free,
)


def faults(parts: Parts) -> Iterator[Fault]:
    """Yield the faults in the recipe's `session` and in the variants' own."""
    owners: list[Path] = [("session",)]
    owners += [("quantization", name, "session") for name in parts.variants]
    for owner in owners:
        yield from _dimensions(owner, parts)
        yield from _config(owner, parts)
    yield from _points(parts)


def remarks(recipe: Recipe, cores: int) -> list[Remark]:
    """Return notes on settings that are allowed but usually mistakes, each with its line.

    Args:
        cores: That this process may use.
    """
    owners = [("session", recipe.sections["session"])]
    owners += [
        (f"quantization.{variant.name}.session", variant.sections["session"])
        for variant in recipe.variants
        if "session" in variant.sections
    ]
    found = []
    for owner, options in owners:
        assert isinstance(options, SessionOptions)
        for keys, text in _doubts(options, cores):
            written = [f"{owner}.{key}" for key in keys if f"{owner}.{key}" in recipe.lines]
            if written:
                found.append(Remark(f"{owner} has {text}", recipe.lines[written[0]]))
    return found


def _doubts(options: SessionOptions, cores: int) -> Iterator[tuple[tuple[str, ...], str]]:
    """(keys, what is odd about their values)."""
    parallel, inter = options.execution_mode == "parallel", options.inter_op_threads
    for name in ("intra_op_threads", "inter_op_threads"):
        threads = getattr(options, name)
        if threads > cores:
            text = f"`{name}: {threads}`, and here are {cores} cores: threads will wait for cores"
            yield (name,), text
    keys = ("execution_mode", "inter_op_threads")
    if parallel and inter == 1:
        text = (
            "`execution_mode: parallel` with `inter_op_threads: 1`: no two operators run at a time; "
            "write 2 or more, or `execution_mode: sequential`"
        )
        yield keys, text
    if not parallel and inter > 1:
        text = (
            f"`inter_op_threads: {inter}`, which does nothing without `execution_mode: parallel`"
        )
        yield keys, text


def _dimensions(owner: Path, parts: Parts) -> Iterator[Fault]:
    node = parts.node(*map(str, owner), "free_dimensions")
    if node is None or not parts.sound(*owner, "free_dimensions"):
        return
    axes = parts.node("dynamic_axes")
    declared = [] if axes is None else list(axes.members)
    for name, member in node.members.items():
        path = (*owner, "free_dimensions", name)
        if name not in declared:
            near = nearest(name, declared)
            known = f"dynamic_axes has {', '.join(declared)}" if declared else "there are none"
            what = f"{dotted(path[:-1])} names '{name}', which is no axis of dynamic_axes"
            fix = f"write `{near}`" if near else "write an axis, or remove it"
            yield Fault(hinted(what, near, known), member.at, fix)
            continue
        axis, size = parts.axes.get(name), member.node.value
        if axis is not None and isinstance(size, int) and not axis.takes(size):
            what = f"{dotted(path)} is {size}; expected {axis.rule}"
            fix = f"write `{axis.nearest(size)}`, or widen axis '{name}'"
            yield Fault(what, member.node.at, fix)


def _config(owner: Path, parts: Parts) -> Iterator[Fault]:
    node = parts.node(*map(str, owner), "config")
    if node is None or not parts.sound(*owner, "config"):
        return
    at = dotted((*owner, "config"))
    for key, member in node.members.items():
        if key in OWN_KEYS:
            what = f"{at} has '{key}', which is `{OWN_KEYS[key]}` of `session`"
            yield Fault(what, member.at, f"write `{OWN_KEYS[key]}: ...` next to `config`")
        elif key in FILE_KEYS:
            what = (
                f"{at} has '{key}', which makes a session write files; a build's come from steps"
            )
            yield Fault(what, member.at, "remove it")
        elif key not in KNOWN_KEYS and not is_free(key):
            near = nearest(key, [*KNOWN_KEYS, *OWN_KEYS])
            what = f"{at} has '{key}', which ONNX Runtime would take and never read"
            own = "keys of providers and custom operators are `ep.NAME.KEY`, `custom_op.NAME.KEY`"
            yield Fault(
                hinted(what, near, own), member.at, f"write `{near}`" if near else "remove it"
            )


def _points(parts: Parts) -> Iterator[Fault]:
    """Variants that take one size of an axis, and are measured at none of it."""
    points = parts.node("benchmark", "points")
    if points is None or not points.items or not parts.sound("benchmark", "points"):
        return
    shared: Any = parts.sections.get("session")
    for name, variant in parts.variants.items():
        options = variant.sections.get("session", shared)
        fixed = options.free_dimensions if isinstance(options, SessionOptions) else {}
        if not fixed or any(axis not in parts.axes for axis in fixed):
            continue
        written = [{axis: m.node for axis, m in point.members.items()} for point in points.items]
        if not any(_meets(fixed, point, parts) for point in written):
            shown = ", ".join(f"{axis}: {size}" for axis, size in fixed.items())
            what = f"benchmark.points has no point at {shown}; variant '{name}' takes no other"
            yield Fault(what, _points_at(parts), f"add `{{{shown}}}` to benchmark.points")


def _meets(fixed: Mapping[str, int], point: Mapping[str, Any], parts: Parts) -> bool:
    for axis, size in fixed.items():
        node = point.get(axis)
        if node is None:
            sizes = [parts.axes[axis].example]
        else:
            sizes = [each.value for each in node.items] if node.items else [node.value]
        if size not in sizes:
            return False
    return True


def _points_at(parts: Parts) -> Location:
    node = parts.node("benchmark", "points")
    assert node is not None
    return node.at
