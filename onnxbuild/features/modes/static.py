"""`static`: weights and activations in 8 bits, with ranges that were calibrated on data."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Variant
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.diagnosis_hints import KeptNodes
from onnxbuild.expansion.feature import ExtraReport, Mode, Subject, WrittenVariant
from onnxbuild.expansion.fidelity import add_sensitivity
from onnxbuild.expansion.fused import fused_for
from onnxbuild.expansion.scope import Scope
from onnxbuild.mode_steps.auto_options import without_auto
from onnxbuild.mode_steps.balancing import balanced
from onnxbuild.mode_steps.eight_bit_faults import ADD_DATA, pairs_of_unsigned
from onnxbuild.mode_steps.saturation import add_saturation
from onnxbuild.onnxkit.accuracy.tolerances import DEFAULT_TOLERANCES
from onnxbuild.steps import balance, calibrate, preprocess, quantize_static, saturation
from onnxbuild.steps.quantize_static import StaticOptions, StaticParams

NAME = "static"


def _model(scope: Scope, variant: Variant) -> OutputRef:
    options = _options(scope, variant)
    inputs = _calibrated(scope, variant)
    if options.keep_most_sensitive:
        inputs["sensitivity"] = _sensitivity(scope, variant)
    step = scope.step(
        of_variant(scope.recipe, variant, "quantize"),
        quantize_static.KIND,
        StaticParams(options, sums_saturate=scope.machine.sums_saturate),
        inputs,
        at=variant.location,
    )
    add_saturation(scope, variant, options, OutputRef(step, "model"), inputs["model"])
    return OutputRef(step, "model")


def _options(scope: Scope, variant: Variant) -> StaticOptions:
    return without_auto(variant.options_as(StaticOptions), scope.machine)


def _sensitivity(scope: Scope, variant: Variant) -> OutputRef:
    """Add the step that measures the effect of the calibrated scales on each node."""
    inputs = _calibrated(scope, variant)
    return add_sensitivity(
        scope,
        inputs["model"],
        of_variant(scope.recipe, variant, "sensitivity"),
        static=quantize_static.scheme_of(_options(scope, variant)),
        calibration=inputs["calibration"],
    )


def _calibrated(scope: Scope, variant: Variant) -> dict[str, OutputRef]:
    """The preprocessed model, and the ranges of its values."""
    recipe = scope.recipe
    options = _options(scope, variant)
    calibration = recipe.section("calibration", calibrate.CalibrationOptions)
    if options.calibration_method != "auto":
        calibration = dataclasses.replace(calibration, method=options.calibration_method)
    model = scope.source().model
    if options.balance:
        model = balanced(scope, variant, fused_for(scope, variant))
    prepared = scope.step(
        of_variant(recipe, variant, "preprocess"),
        preprocess.KIND,
        preprocess.PreprocessParams(),
        {"model": model},
        at=variant.location,
    )
    calibrated = scope.step(
        of_variant(recipe, variant, "calibrate"),
        calibrate.KIND,
        calibrate.CalibrateParams(
            data=recipe.entrypoints["calibration"],
            inputs=recipe.inputs,
            options=calibration,
            axes=recipe.axes,
            grid=quantize_static.grid_for(options, calibration.method),
            means=options.bias_correction,
        ),
        {"model": OutputRef(prepared, "model")},
        at=variant.location,
        section="calibration",
    )
    return {
        "model": OutputRef(prepared, "model"),
        "calibration": OutputRef(calibrated, "calibration"),
    }


def _laid(
    scope: Scope,
    subjects: Sequence[Subject],
    programs: Mapping[str, OutputRef],  # noqa: ARG001
) -> Mapping[str, Sequence[ExtraReport]]:
    """The calibrated ranges of each static variant."""
    return {
        each.variant.name: [
            ExtraReport(_calibrated(scope, each.variant)["calibration"], "calibration.json")
        ]
        for each in subjects
        if each.variant.mode == NAME
    }


def _faults(variant: WrittenVariant, parts: Parts) -> Iterator[Fault]:
    if variant.parsed is not None:
        options = variant.parsed.options_as(StaticOptions)
        yield from pairs_of_unsigned(variant.name, options, parts)
    if parts.lacks("calibration", "data"):
        what = f"variant '{variant.name}' has mode 'static', and no calibration.data is named"
        yield Fault(what, variant.at, ADD_DATA)


FEATURE = Mode(
    name=NAME,
    precision="int8",
    tolerances={"int8": DEFAULT_TOLERANCES["int8"]},
    words="qdq ptsq calibrated",
    options=StaticOptions,
    kinds=(preprocess.KIND, calibrate.KIND, balance.KIND, quantize_static.KIND, saturation.KIND),
    variant_faults=_faults,
    model=_model,
    laid=_laid,
    sensitivity=_sensitivity,
    kept_nodes=KeptNodes(quantize_static.KIND.name),
)
