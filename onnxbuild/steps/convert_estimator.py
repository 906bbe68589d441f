"""Convert an estimator of scikit-learn, XGBoost or LightGBM to canonical ONNX."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from onnxbuild.core.digest import canonical_json
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import REPORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.validation_fixes import CONVERTER_FAULT
from onnxbuild.onnxkit.data.feeds import Feeds, make_feeds
from onnxbuild.onnxkit.estimators.categories import with_categories
from onnxbuild.onnxkit.estimators.conversion_fault import conversion_fault
from onnxbuild.onnxkit.estimators.convert import convert, parts_of
from onnxbuild.onnxkit.estimators.made import LIGHTGBM, SKLEARN, XGBOOST, make_estimator
from onnxbuild.onnxkit.estimators.outputs import UNKNOWN_CATEGORY, compute, named_outputs
from onnxbuild.onnxkit.estimators.unsupported import refuse_unsupported
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.ready_onnx.accept import accept

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class ConvertEstimatorParams:
    """Parameters of a conversion.

    Attributes:
        frontend: `sklearn`, `xgboost` or `lightgbm`.
        model: The callable, or the estimator's file.
        inputs: What the recipe declares.
        outputs: Names in order; empty takes all that the estimator has.
        axes: The recipe's.
        opset: Of ONNX's default domain.
    """

    frontend: str
    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    opset: int


def run(context: StepContext) -> Outcome:
    """Write the estimator as ONNX, with the outputs that the recipe names.

    A note says if it computes something else, so that no other step is blamed for it.

    Raises:
        StepError: The estimator can't be had or converted, or the model is not as declared.
    """
    params: ConvertEstimatorParams = context.params
    phase("loading the estimator")
    estimator = make_estimator(context, params.model, params.frontend)
    refuse_unsupported(parts_of(estimator), context.where)
    outputs = named_outputs(estimator, params.outputs, context.where)
    sizes = {axis.name: axis.example for axis in params.axes}
    feeds = with_categories(make_feeds(params.inputs, sizes, 0), params.inputs, estimator)

    def computed(feeds: Feeds) -> dict[str, np.ndarray]:
        return compute(estimator, outputs, params.inputs, feeds, context.where)

    probe = feeds, computed(feeds)
    phase("converting")
    model, names = convert(
        estimator,
        outputs,
        params.inputs,
        opset=params.opset,
        probe=probe,
        where=context.where,
    )
    shown = type(estimator).__name__
    try:
        outcome = accept(
            context,
            model,
            shown,
            inputs=params.inputs,
            outputs=params.outputs,
            axes=params.axes,
            rename=names,
        )
    except StepError as error:
        fix = UNKNOWN_CATEGORY if "Unknown Category" in error.what else error.fix
        raise StepError(error.what, where=error.where, fix=fix) from error
    phase("comparing it with the estimator")
    fault = conversion_fault(context.output("model"), computed, probe, context.where)
    if not fault:
        return outcome
    report = canonical_json({CONVERTER_FAULT: fault})
    (context.output("config") / REPORT_FILE).write_bytes(report)
    return replace(outcome, notes=(*outcome.notes, _changed(params.frontend, shown, fault)))


def _changed(frontend: str, shown: str, fault: str) -> str:
    converter = "skl2onnx" if frontend == SKLEARN else "onnxmltools"
    return (
        f"{converter} changed what {shown} computes: {fault}; no setting of a variant mends that: take options of "
        "the estimator that its converter supports"
    )


def _kind(frontend: str, *packages: str) -> StepKind:
    return StepKind(
        name=f"convert-{frontend}",
        version=7,
        params=ConvertEstimatorParams,
        inputs=(),
        outputs={"model": "onnx-model", "config": "report"},
        toolchain=("onnx", "onnxruntime", "numpy", *packages, "skl2onnx", "scikit-learn"),
        run=run,
        user_code=True,
        entrypoints=lambda params: (params.model,),
    )


KINDS = {
    SKLEARN: _kind(SKLEARN),
    XGBOOST: _kind(XGBOOST, "xgboost", "onnxmltools"),
    LIGHTGBM: _kind(LIGHTGBM, "lightgbm", "onnxmltools"),
}
"""Step kinds by frontend."""
