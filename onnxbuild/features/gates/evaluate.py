"""The user's own metric, and how much of it may be lost."""

from collections.abc import Iterator, Mapping
from dataclasses import fields

from onnxbuild.core.graph import OutputRef
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion import cells, pipelines
from onnxbuild.expansion.addresses import further
from onnxbuild.expansion.diagnosis_hints import DiagnosisHints
from onnxbuild.expansion.evaluation import PIPELINE, PROCESSING, SECTION, WHOLE, add_evaluation
from onnxbuild.expansion.feature import Column, Feature, Section, Subject
from onnxbuild.expansion.scope import Scope
from onnxbuild.steps import evaluate

_CALLABLES = {
    "data": (
        "evaluation",
        (
            "callable that yields (feeds, labels) for each batch, or returns one such pair with arrays of all samples; "
            "feeds: input name -> array"
        ),
    ),
    "metric": (
        "metric",
        (
            "callable: (outputs, labels) -> score, greater is better. Either joined over all batches, outputs[NAME] and "
            "labels as arrays: `float((outputs['logits'].argmax(1) == labels).mean())`; or as lists with an entry for each "
            "batch, outputs[0][NAME] and labels[0]"
        ),
    ),
}


def _reports_on(scope: Scope, subject: Subject, number: int) -> Mapping[str, OutputRef]:
    recipe = scope.recipe
    target = recipe.targets[number]
    scored = add_evaluation(
        scope, subject.variant, subject.model, target, further=further(recipe, number)
    )
    return {} if scored is None else {f"evaluation/{target.name}": scored}


def _faults(parts: Parts) -> Iterator[Fault]:
    section = parts.node(SECTION)
    if section is None or not isinstance(section.value, dict):
        return
    known = {*_CALLABLES, *(each.name for each in fields(evaluate.EvaluateOptions))}
    if set(section.members) - known:
        return  # one of them may be what is meant
    if (options := parts.sections.get(SECTION)) and getattr(options, "of", "") == WHOLE:
        yield from _of_whole(parts)
        return
    yield from _of_pipelines(parts)
    missing = [key for key in _CALLABLES if key not in section.members]
    if missing:
        what = f"evaluate has no {' and no '.join(missing)}; both are needed for a score"
        fix = "add " + " and ".join(f"`{key}: FILE.py:CALLABLE`" for key in missing)
        yield Fault(what, parts.key_at(SECTION), fix)


def _of_whole(parts: Parts) -> Iterator[Fault]:
    """Yield what is missing for scores of the pipeline of all components."""
    if parts.node(pipelines.NAME) is None:
        what = "evaluate is of the whole; the recipe has no `pipeline` next to `components`"
        yield Fault(what, parts.at(SECTION, "of"), "write `of: model`, or add a `pipeline`")
    elif all(parts.node(name, "metric") is None for name in (SECTION, pipelines.NAME)):
        what = "evaluate has no metric, and neither has `pipeline`"
        yield Fault(what, parts.key_at(SECTION), "add `metric: FILE.py:CALLABLE` to one of them")
    if parts.node(SECTION, "data") is not None:
        what = "evaluate is of the whole, whose data are the samples of `pipeline`"
        yield Fault(what, parts.key_at(SECTION, "data"), "remove `data`")


def _of_pipelines(parts: Parts) -> Iterator[Fault]:
    """Yield what is missing for scores of pipelines, which take other inputs than the model."""
    options = parts.sections.get(SECTION)
    if not isinstance(options, evaluate.EvaluateOptions) or options.of != PIPELINE:
        return
    if parts.lacks(PROCESSING):
        what = "evaluate is of the pipeline; the recipe has no `processing`"
        yield Fault(what, parts.at(SECTION, "of"), "write `of: model`, or add `processing`")
    elif options.max_drop is not None and parts.lacks(PROCESSING, "own"):
        what = "evaluate has max_drop; there is no score of your own pipeline to compare with"
        fix = "add `processing: {own: FILE.py:CALLABLE}`, or write `min` in place of `max_drop`"
        yield Fault(what, parts.at(SECTION, "max_drop"), fix)


FEATURE = Feature(
    name=SECTION,
    sections=(
        Section(
            name=SECTION,
            options=evaluate.EvaluateOptions,
            callables=_CALLABLES,
            needs_onnx="scores are those of ONNX models",
        ),
    ),
    kinds=(evaluate.KIND,),
    faults=_faults,
    reports_on=_reports_on,
    columns=(Column("score", SECTION, cells.number("score", 4), place=80, if_any=True),),
    shown={evaluate.KIND.name: "evaluation"},
    released_if_shared=(evaluate.KIND.name,),
    diagnosis=DiagnosisHints(judges=(evaluate.KIND.name,), answers={"max_drop": SECTION}),
)
