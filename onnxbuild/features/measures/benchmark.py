"""Latency, throughput and memory of all variants side by side, on each target."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.sizes import figure
from onnxbuild.core.state import STATE
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts, key_needs_frontend
from onnxbuild.expansion import cells
from onnxbuild.expansion.benchmarks import (
    PIPELINES,
    SECTION,
    add_benchmarks,
    home_target,
    is_measured,
)
from onnxbuild.expansion.feature import Column, ExtraReport, Feature, Section, SideBySide, Subject
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.benchmark.baseline import baseline_of, one_heading
from onnxbuild.onnxkit.benchmark.options import BenchmarkOptions
from onnxbuild.onnxkit.benchmark.report import MEASURED_ON, report_file
from onnxbuild.onnxkit.data.greedy import RolesError, roles_of
from onnxbuild.onnxkit.drawing.numbers import UNKNOWN, shown_ratio
from onnxbuild.steps import benchmark, import_model

_NOISY = " ?"
"""After what was measured while others used the machine, or did not settle."""

_HUNDREDTH = 0.01


def _laid(
    scope: Scope, subjects: Sequence[Subject], programs: Mapping[str, OutputRef]
) -> Mapping[str, Sequence[ExtraReport]]:
    targets = scope.recipe.targets
    if not is_measured(scope):
        return {}
    reports = add_benchmarks(
        scope,
        {each.variant.name: each.model for each in subjects},
        {each.variant.name: each.session for each in subjects},
        programs,
    )
    everywhere = [
        ExtraReport(
            report, report_file(targets[number].name if number else ""), targets[number].name
        )
        for number, report in enumerate(reports)
    ]
    home = home_target(scope.recipe)
    at_home = ExtraReport(reports[home], report_file(), targets[home].name)
    return {
        **{each.variant.name: everywhere for each in subjects},
        **{name: [at_home] for name in programs},
    }


def _latency(metrics: Mapping[str, Any], variant: str) -> str:
    found = metrics.get("variants", {}).get(variant, {}).get("p50_ms")
    if not isinstance(found, int | float):
        return cells.NONE
    shown = f"{found:.2f}" if found >= _HUNDREDTH else figure(found, 2)
    return f"{shown} ms{_doubt(metrics, variant)}"


def _speedup(metrics: Mapping[str, Any], variant: str) -> str:
    found = metrics.get("variants", {}).get(variant, {})
    shown = shown_ratio(*(found.get(key) for key in ("speedup", "speedup_low", "speedup_high")))
    return shown if shown == UNKNOWN else shown + _doubt(metrics, variant)


def _heading(measured: Sequence[Mapping[str, Any]]) -> str:
    """`vs scikit-learn`; `vs baseline` where models have several, or none."""
    return one_heading([baseline_of(each) for each in measured])


def _place(measured: Sequence[Mapping[str, Any]]) -> str:
    """`p50`; with the machine where any machine's measurements count."""
    places = {str(each[MEASURED_ON]) for each in measured if MEASURED_ON in each}
    if not places:
        return "p50"
    return f"p50 ({places.pop() if len(places) == 1 else 'on several machines'})"


def _faults(parts: Parts) -> Iterator[Fault]:
    node = parts.node(SECTION, "compile")
    if node is not None and node.value not in (False, "false"):
        yield from key_needs_frontend(parts, parts.module_frontends, SECTION, "compile")
    tokens = parts.node(SECTION, "tokens")
    if (
        tokens is None
        or tokens.value in (0, "0")
        or not (parts.sound("dummy_inputs") and parts.sound(STATE))
    ):
        return
    try:
        roles_of(tuple(parts.inputs.values()))
    except RolesError as error:
        what = f"{SECTION}.tokens can't continue prompts with this model: {error}"
        yield Fault(
            what, parts.key_at(SECTION, "tokens"), "remove it, or declare the cache as `state`"
        )


def _doubt(metrics: Mapping[str, Any], variant: str) -> str:
    is_stable = metrics.get("variants", {}).get(variant, {}).get("stable", True)
    return _NOISY if metrics.get("noisy") or not is_stable else ""


FEATURE = Feature(
    name=SECTION,
    sections=(Section(name=SECTION, options=BenchmarkOptions, has_points=True),),
    kinds=(import_model.KIND, import_model.PROGRAM, benchmark.KIND),
    faults=_faults,
    laid=_laid,
    columns=(
        Column("p50", SECTION, _latency, place=20, of_all=True, more=(PIPELINES,), heading=_place),
        Column(
            "vs PyTorch",
            SECTION,
            _speedup,
            place=30,
            of_all=True,
            more=(PIPELINES,),
            heading=_heading,
        ),
    ),
    shown={benchmark.KIND.name: "benchmark"},
    released=(benchmark.KIND.name,),
    side_by_side=SideBySide(benchmark.KIND.name, alone={f"{SECTION}.baseline": "false"}),
)
