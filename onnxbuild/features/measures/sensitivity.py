"""Sensitivity of each node to few bits: a table, where the recipe asks for one."""

from collections.abc import Iterator, Mapping, Sequence

from onnxbuild.core.graph import OutputRef
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.diagnosis_hints import DiagnosisHints, NodeLosses
from onnxbuild.expansion.evaluation import without_scores
from onnxbuild.expansion.feature import ExtraReport, Feature, Section, Subject
from onnxbuild.expansion.fidelity import add_sensitivity, can_rank, will_rank
from onnxbuild.expansion.fused import fused_for, own_address
from onnxbuild.expansion.generation import has_prompts
from onnxbuild.expansion.pipelines import NAME as PIPELINE
from onnxbuild.expansion.pipelines import has_measure, will_have_measure
from onnxbuild.expansion.scope import Scope
from onnxbuild.steps import sensitivity

SECTION = "sensitivity"


def _laid(
    scope: Scope,
    subjects: Sequence[Subject],
    programs: Mapping[str, OutputRef],  # noqa: ARG001
) -> Mapping[str, Sequence[ExtraReport]]:
    """Tables of the modes that have their own.

    Where there is none, and for searches, it is that of plain dynamic quantization.
    """
    recipe = scope.recipe
    if not recipe.section(SECTION, sensitivity.SensitivityOptions).table:
        return {}
    found = {
        each.variant.name: each.mode.sensitivity(scope, each.variant)
        for each in subjects
        if each.mode.sensitivity is not None
    }
    for each in subjects:
        if each.variant.searches or (not found and each.mode.is_plain):
            model = fused_for(scope, each.variant)
            address = own_address(recipe, each.variant, "sensitivity")
            found[each.variant.name] = add_sensitivity(scope, model, address)
    return {name: [ExtraReport(table, "sensitivity.json")] for name, table in found.items()}


def _faults(parts: Parts) -> Iterator[Fault]:
    """Yield what is missing for a table, or for a choice of sensitive nodes."""
    section = parts.node(SECTION)
    written = {} if section is None else section.members
    said = {key: written[key].node.value for key in ("rank_by", "table") if key in written}
    if said.get("rank_by") == "metric" and not will_have_measure(parts):
        what, at = "sensitivity ranks by the user's metric", parts.at(SECTION, "rank_by")
        if parts.node(PIPELINE) is not None and parts.node("evaluate") is None:
            what = f"{what}, and `{PIPELINE}` has none"
            yield Fault(what, at, "add `metric: FILE.py:CALLABLE` and `min` to it")
            return
        yield from without_scores(
            parts, what, at, "write `rank_by: cosine`, which goes by `fidelity`"
        )
        return
    if will_rank(parts):
        return
    if said.get("table") is True:
        what = "sensitivity asks for a table, and no fidelity.data is named to measure on"
        at = parts.at(SECTION, "table")
        fix = "add `fidelity: {data: FILE.py:CALLABLE}`, or write `rank_by: metric`"
        yield Fault(what, at, fix)
    quantization = parts.node("quantization")
    for name, member in quantization.members.items() if quantization else ():
        share = member.node.child("keep_most_sensitive")
        if share is not None and share.value != 0:
            what = f"variant '{name}' keeps sensitive nodes, and no fidelity.data is named"
            yield Fault(what, member.at, "add `fidelity: {data: FILE.py:CALLABLE}`")


FEATURE = Feature(
    name=SECTION,
    sections=(Section(name=SECTION, options=sensitivity.SensitivityOptions),),
    kinds=(sensitivity.KIND,),
    faults=_faults,
    shown={sensitivity.KIND.name: "sensitivity"},
    laid=_laid,
    diagnosis=DiagnosisHints(
        losses=NodeLosses(
            sensitivity.KIND.name,
            {f"{SECTION}.table": "true"},
            of_whole={f"{SECTION}.rank_by": "metric"},
            can_rank=can_rank,
            in_whole=has_measure,
            by_gate=has_prompts,
        )
    ),
)
