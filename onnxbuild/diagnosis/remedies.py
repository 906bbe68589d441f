"""Propose remedies for a variant, as settings to build it with and as YAML to paste."""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxbuild.catalog import MODES, all_features
from onnxbuild.core.graph import Step
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.expansion.diagnosis_hints import KeptNodes, Milder
from onnxbuild.expansion.variants import (
    Written,
    flow,
    written_options,
    written_variant,
    yaml_lines,
)
from onnxbuild.onnxkit.accuracy.node_trace import NodeError, StageError

_ROUNDING = 1e-8
"""Noise to signal (80 dB) that sums in another order may have in float32."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change of the recipe.

    Attributes:
        what: It, in words.
        settings: As `--set` takes them: dotted key -> YAML; what they set, they set as a whole.
        yaml: Lines to paste.
        nodes: That stay in fp32; those that did before included.
    """

    what: str
    settings: Mapping[str, str]
    yaml: tuple[str, ...]
    nodes: tuple[str, ...] = ()


def kept_nodes(variant: Variant, step: Step) -> KeptNodes | None:
    """Return how a step of a variant can leave single nodes in fp32; None if it can't."""
    kept = MODES[variant.mode].kept_nodes
    return kept if kept is not None and kept.kind == step.kind else None


def suspects(
    nodes: Sequence[NodeError], effects: Mapping[str, float], largest: float = math.inf
) -> tuple[tuple[str, ...], ...]:
    """The nodes to leave in fp32, worst first; those that only help together are one group.

    Args:
        nodes: The trace between the input and the output of the step at fault.
        effects: Node -> what it alone does to the outputs, as far as known.
        largest: The largest magnitude that values can have in its output.
    """
    groups: list[tuple[str, ...]] = []
    if math.isfinite(largest):
        beyond = tuple(
            each.name
            for each in nodes
            if each.largest > largest or (each.lost and math.isfinite(each.before))
        )
        groups += [beyond] if beyond else []
    taken = {name for group in groups for name in group}
    ranked = sorted(
        (each for each in nodes if each.changed and each.name not in taken),
        key=lambda each: (-effect_of(each, effects), -each.added),
    )
    return (*groups, *((*each.behind, *each.inside, each.name) for each in ranked))


def effect_of(each: NodeError, effects: Mapping[str, float]) -> float:
    """Return a node's own effect on the outputs; the noise added at it, if the former is unknown.

    That is so for nodes that can't be run by themselves, such as a Loop, which counts in integers.
    """
    return effects.get(each.name, max(each.added, 0.0) if each.changed else 0.0)


def keep_in_fp32(
    recipe: Recipe, variant: Variant, kept: KeptNodes, names: Sequence[str]
) -> Remedy:
    """Leave nodes in fp32, besides those that the recipe leaves there.

    Args:
        variant: Whose error it is.
        kept: How its mode leaves nodes in fp32.
    """
    nodes = tuple(dict.fromkeys([*getattr(variant.options, kept.option), *names]))
    count = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    written = {**written_variant(recipe, variant), kept.option: list(nodes)}
    return _of_variant(recipe, variant, f"{count} in fp32", written, nodes)


def milder_step(step: Step) -> Milder | None:
    """Return how a step can do less; None if it can't."""
    found = (milder for each in all_features() for milder in each.diagnosis.milder)
    return next((milder for milder in found if milder.kind == step.kind), None)


def do_less(recipe: Recipe, variant: Variant, milder: Milder) -> tuple[Remedy, ...]:
    """Do less in a step, by degrees; changes that change nothing are left out.

    Args:
        variant: Whose error it is.
        milder: How the step does less.
    """
    section = milder.section
    own = section in variant.sections
    options: Any = variant.sections[section] if own else recipe.sections[section]
    below: Any = recipe.sections[section] if own else None
    found = []
    for changes in milder.changes:
        less = dataclasses.replace(options, **changes)
        if less == options:
            continue
        what = f"{section}: {flow(changes)}"
        written = written_options(less, below)
        if own:
            whole = {**written_variant(recipe, variant), section: written}
            found.append(_of_variant(recipe, variant, what, whole))
        else:
            yaml = in_component(recipe, (f"{section}: {flow(written)}",))
            found.append(Remedy(what, {key_of(recipe, section): json.dumps(written)}, yaml))
    return tuple(found)


def of_the_runtime(variant: Variant, error: StageError) -> tuple[str, ...]:
    """Lines on an error that ONNX Runtime's own optimizations bring in as it opens a model.

    Args:
        variant: Whose error it is.
        error: Of the whole way.
    """
    what = (
        "the model as it is written has hardly any of it: ONNX Runtime's optimizations bring it in"
    )
    hints = [each.diagnosis for each in all_features()]
    less = next(_yaml(each.as_written) for each in hints if each.as_written)
    if error.ratio > _ROUNDING or error.max_abs == 0.0:
        return (f"{what}; this has it do none:", "", less)
    unit = 10.0 ** math.floor(math.log10(error.max_abs))
    atol = float(f"{math.ceil(error.max_abs / unit) * unit:.0e}")
    return (
        f"{what}, and it is no more than rounding; allow it:",
        "",
        next(
            _yaml(allowed) for each in hints if (allowed := each.allows(variant.precision, atol))
        ),
        "",
        "or run the model as it is written, which is slower:",
        "",
        less,
    )


def _yaml(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """One section in a line."""
    ((name, options),) = sections.items()
    return f"{name}: {flow(options)}"


def as_setting(recipe: Recipe, variant: Variant) -> str:
    """A variant as `--set quantization.NAME=` takes it."""
    return json.dumps(written_variant(recipe, variant))


def key_of(recipe: Recipe, key: str) -> str:
    """A key as `--set` takes it: of a component, its own alone."""
    return f"components.{recipe.component}.{key}" if recipe.component else key


def in_component(recipe: Recipe, yaml: Sequence[str]) -> tuple[str, ...]:
    """Lines to paste, below the component whose they are."""
    if not recipe.component:
        return tuple(yaml)
    return ("components:", f"  {recipe.component}:", *(f"    {line}" for line in yaml))


def _of_variant(
    recipe: Recipe, variant: Variant, what: str, written: Written, nodes: tuple[str, ...] = ()
) -> Remedy:
    return Remedy(
        what=what,
        settings={key_of(recipe, f"quantization.{variant.name}"): json.dumps(written)},
        yaml=in_component(
            recipe, ("quantization:", f"  {variant.name}:", *yaml_lines(written, 4))
        ),
        nodes=nodes,
    )
