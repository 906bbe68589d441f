"""Whether a model's outputs are those of the reference, within tolerances, on each target."""

from collections.abc import Iterator, Mapping
from typing import Any

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Variant
from onnxbuild.document.faults import Fault, choices, hinted, nearest
from onnxbuild.document.node import dotted
from onnxbuild.document.parts import Parts
from onnxbuild.expansion import cells
from onnxbuild.expansion.addresses import further, of_variant
from onnxbuild.expansion.diagnosis_hints import DiagnosisHints
from onnxbuild.expansion.evaluation import holds_scores
from onnxbuild.expansion.feature import Column, Feature, Section, Subject
from onnxbuild.expansion.fused import SECTION as OPTIMIZE
from onnxbuild.expansion.generation import decides
from onnxbuild.expansion.limits import tolerances_of
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import target_inputs
from onnxbuild.onnxkit.model.node_patterns import NODES_OPTION
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.steps import optimize, provider, validate

NAME = "validate"


def _reports_on(scope: Scope, subject: Subject, number: int) -> Mapping[str, OutputRef]:
    recipe, variant, session = scope.recipe, subject.variant, subject.session
    target, settings = recipe.targets[number], session.settings
    kept = subject.mode.kept_nodes
    can_name = kept is not None and kept.alone and kept.option == NODES_OPTION
    # The model that a quantizer took, by which the nodes can be judged that it left as they were.
    made_of = scope.graph.inputs_of(subject.model)
    exact = (
        {"exact": made_of["model"]}
        if not number and can_name and target.is_cpu and not target.environment
        else {}
    )
    # The model as it was made, which shows whether the optimizations bring an error in.
    made = (
        {"source": scope.source().model, "config": scope.source().config}
        if variant.precision == "fp32" and not number
        else {}
    )
    step = scope.step(
        of_variant(recipe, variant, NAME, further(recipe, number)),
        validate.KIND,
        validate.ValidateParams(
            variant=variant.name,
            precision=variant.precision,
            tolerances=tolerances_of(recipe, variant),
            target=target,
            gates=recipe.gates[target.name],
            session=SessionSettings() if session.steps else settings.judged(),
            excluded=getattr(variant.options, NODES_OPTION, ()),
            options=variant.option_names,
            owner=variant.owner_of(NAME),
            level=_level(scope, variant),
            scored=holds_scores(scope) or decides(recipe, variant),
            in_place=recipe.inputs if any(each.in_place for each in recipe.inputs) else (),
        ),
        {
            "model": subject.model,
            "reference": scope.reference(variant, settings.free_dimensions),
            **exact,
            **made,
            **{name: made_of[name] for name in ("calibration",) if name in made_of},
            **session.inputs(target, "judged"),
            **target_inputs(scope, target),
        },
        at=variant.location,
    )
    return {f"validation/{target.name}": OutputRef(step, "report")}


def _level(scope: Scope, variant: Variant) -> str:
    """`optimize.level` in force."""
    held = variant if OPTIMIZE in variant.sections else scope.recipe
    return held.section(OPTIMIZE, optimize.OptimizeOptions).level


def _faults(parts: Parts) -> Iterator[Fault]:
    """Tolerances of outputs that are none."""
    if not parts.outputs:
        return
    owners: list[tuple[str, ...]] = [(NAME, each) for each in parts.declared(NAME)]
    owners += [
        (key, each, NAME) for key in ("quantization", "formats") for each in parts.declared(key)
    ]
    for owner in owners:
        outputs = parts.node(*owner, "outputs")
        if outputs is None or not parts.sound(*owner):
            continue
        for name, member in outputs.members.items():
            if name not in parts.outputs:
                near = nearest(name, parts.outputs)
                expected = f"expected {choices(parts.outputs)}"
                what = f"{dotted((*owner, 'outputs'))} names '{name}', which is no output"
                fix = f"write `{near}`" if near else "write an output's name"
                yield Fault(hinted(what, near, expected), member.at, fix)


def _allowing(precision: str, difference: float) -> Mapping[str, Mapping[str, Any]]:
    """The section with an absolute tolerance for all variants of a precision."""
    return {NAME: {precision: {"atol": difference}}}


FEATURE = Feature(
    name=NAME,
    sections=(
        Section(
            name=NAME,
            options=validate.ValidateOptions,
            holds_tolerances=True,
            words="validation tolerances",
        ),
    ),
    kinds=(provider.KIND, validate.KIND),
    faults=_faults,
    shown={validate.KIND.name: "validation"},
    reports_on=_reports_on,
    diagnosis=DiagnosisHints(compares=(validate.KIND.name,), allows=_allowing),
    columns=(
        Column("max abs error", NAME, cells.error("max_abs"), place=40),
        Column("cosine", NAME, cells.number("cosine_min", 5), place=50),
        Column("equal", NAME, cells.number("equal_min", 4), place=60, if_any=True),
    ),
)
