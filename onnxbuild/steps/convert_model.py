"""Convert a model of a framework to ONNX: in an environment of its own, or an estimator by skl2onnx and onnxmltools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.digest import canonical_json
from onnxbuild.core.environment import Environment
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import MODEL_FILE, REPORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.validation_fixes import CONVERTER_FAULT
from onnxbuild.onnxkit.converters import frameworks
from onnxbuild.onnxkit.converters.frameworks import Framework
from onnxbuild.onnxkit.converters.run_there import run_there
from onnxbuild.onnxkit.converters.settle import settle
from onnxbuild.onnxkit.data.feeds import Feeds, make_feeds
from onnxbuild.onnxkit.estimators.boosters import categories_of, with_categories
from onnxbuild.onnxkit.estimators.convert import convert, parts_of, refuse_unsupported
from onnxbuild.onnxkit.estimators.made import LIGHTGBM, SKLEARN, XGBOOST, make_estimator
from onnxbuild.onnxkit.estimators.outputs import compute, named_outputs
from onnxbuild.onnxkit.estimators.thresholds import conversion_fault
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model, save_model
from onnxbuild.onnxkit.ready_onnx.accept import accept

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class ConvertModelParams:
    """Parameters of a conversion.

    Attributes:
        model: The model's files, or the callable.
        environment: Where the framework is installed.
        opset: Of ONNX's default domain.
        inputs: What the recipe declares, where the framework needs it; else none.
        outputs: The same.
        axes: The same.
    """

    model: Entrypoint
    environment: Environment
    opset: int
    inputs: tuple[DummyInput, ...] = ()
    outputs: tuple[str, ...] = ()
    axes: tuple[Axis, ...] = field(default=())


def _convert(context: StepContext, framework: Framework) -> Outcome:
    """Have the framework's environment write ONNX, and bring it into canonical form."""
    params: ConvertModelParams = context.params
    made = context.scratch / MODEL_FILE
    asked = framework.request(context, params)
    request = {**asked, "opset": params.opset, "model": str(made)}
    phase("converting in the framework's own environment")
    versions = run_there(context, params.environment, framework.convert, request)
    model = load_model(Path(made), weights="mapped")
    phase("bringing it into canonical form")
    settle(model)
    canonicalize(model)
    folder = context.output("model")
    save_model(model, folder)
    return Outcome({"size_bytes": file_bytes(folder), **versions})


def convert_saved_model(context: StepContext) -> Outcome:
    """Write a signature of a SavedModel as ONNX.

    Raises:
        StepError: TensorFlow can't load it, or tf2onnx can't convert it.
    """
    return _convert(context, frameworks.SAVED_MODEL)


def convert_tflite(context: StepContext) -> Outcome:
    """Write a file of TensorFlow Lite as ONNX; raises as `convert_saved_model`."""
    return _convert(context, frameworks.TFLITE)


def convert_jax(context: StepContext) -> Outcome:
    """Write a function of JAX as ONNX.

    Raises:
        StepError: The callable or its function is not as expected, or jax2onnx can't convert it.
    """
    return _convert(context, frameworks.JAX)


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


def convert_estimator(context: StepContext) -> Outcome:
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
    categories = categories_of(estimator)
    feeds = with_categories(make_feeds(params.inputs, sizes, 0), params.inputs, categories)

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
    outcome = accept(
        context,
        model,
        shown,
        inputs=params.inputs,
        outputs=params.outputs,
        axes=params.axes,
        rename=names,
    )
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


def _kind(
    name: str,
    version: int,
    params: type,
    run: Callable[[StepContext], Outcome],
    *packages: str,
    config: bool = False,
) -> StepKind:
    return StepKind(
        name=f"convert-{name}",
        version=version,
        params=params,
        inputs=(),
        outputs={"model": "onnx-model", **({"config": "report"} if config else {})},
        toolchain=("onnx", *packages),
        run=run,
        user_code=True,
        entrypoints=lambda params: (params.model,),
    )


FRAMEWORKS = {
    framework.name: _kind(framework.kind, 1, ConvertModelParams, run, "numpy", framework.package)
    for framework, run in (
        (frameworks.SAVED_MODEL, convert_saved_model),
        (frameworks.TFLITE, convert_tflite),
        (frameworks.JAX, convert_jax),
    )
}
"""Step kinds by frontend."""

ESTIMATORS = {
    name: _kind(
        name,
        6,
        ConvertEstimatorParams,
        convert_estimator,
        *("onnxruntime", "numpy", *packages, "skl2onnx", "scikit-learn"),
        config=True,
    )
    for name, packages in (
        (SKLEARN, ()),
        (XGBOOST, ("xgboost", "onnxmltools")),
        (LIGHTGBM, ("lightgbm", "onnxmltools")),
    )
}
"""Step kinds by frontend."""
