"""Convert an estimator to ONNX: skl2onnx, with onnxmltools' converters for boosters."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.estimators.boosters import booster_types
from onnxbuild.onnxkit.estimators.outputs import EstimatorOutput

if TYPE_CHECKING:
    import numpy as np
    import onnx

_ML = "ai.onnx.ml"
_ML_OPSET = 3
"""The last that skl2onnx writes."""

_C, _C_UNICODE = "C", "C.UTF-8"
"""Locales that every machine has, and that Linux has."""


def convert(
    estimator: Any,
    outputs: Sequence[EstimatorOutput],
    inputs: Sequence[DummyInput],
    *,
    opset: int,
    probe: tuple[Feeds, Mapping[str, np.ndarray]],
    where: str,
) -> tuple[onnx.ModelProto, dict[str, str]]:
    """A model whose outputs have the shapes and types of the estimator's own, and their names.

    Args:
        estimator: Fitted.
        outputs: All of its.
        inputs: What the recipe declares.
        opset: Of ONNX's default domain.
        probe: Feeds, and what the estimator computes on them; their shapes and types count.
        where: `recipe:step`.

    Returns: The model, and its names of outputs -> the estimator's.

    Raises:
        StepError: It can't be converted.
    """
    import skl2onnx

    if opset > skl2onnx.__max_supported_opset__:
        raise StepError(
            f"opset is {opset}; skl2onnx {skl2onnx.__version__} converts up to "
            f"{skl2onnx.__max_supported_opset__}",
            where=where,
            fix=f"write `opset: {skl2onnx.__max_supported_opset__}`",
        )
    _register_boosters(where)
    has_zipmap = hasattr(estimator, "predict_proba")
    with external_code(lambda error: _refusal(estimator, error, where)), _plain_integers():
        model: onnx.ModelProto = skl2onnx.convert_sklearn(
            estimator,
            name="main_graph",
            initial_types=[(each.name, _type(each)) for each in inputs],
            options={id(estimator): {"zipmap": False}} if has_zipmap else None,
            target_opset={"": opset, _ML: _ML_OPSET},
        )
    _one_import_a_domain(model, opset)
    _settle_locales(model)
    return model, _fit_outputs(model, outputs, probe, where)


def _type(each: DummyInput) -> Any:
    from skl2onnx.common import data_types

    kinds = {
        "float32": data_types.FloatTensorType,
        "float64": data_types.DoubleTensorType,
        "int64": data_types.Int64TensorType,
        "int32": data_types.Int32TensorType,
        "bool": data_types.BooleanTensorType,
        "string": data_types.StringTensorType,
    }
    if each.dtype not in kinds:
        raise StepError(
            f"input '{each.name}' has dtype {each.dtype}; estimators take {', '.join(kinds)}",
            fix=f"write `dummy_inputs: {{{each.name}: {{dtype: float32}}}}`",
        )
    return kinds[each.dtype]([size if isinstance(size, int) else None for size in each.shape])


def _refusal(estimator: Any, error: BaseException, where: str) -> StepError:
    from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator

    lines = [line.strip() for line in message_of(error).splitlines() if line.strip()]
    if isinstance(error, (MissingConverter, MissingShapeCalculator)):
        named = next((line for line in lines if "type '" in line or "alias '" in line), "")
        what = named.partition("'")[2].partition("'")[0] or type(estimator).__name__
        what = what.removeprefix("<class ").strip("'>")
        return StepError(
            f"no converter to ONNX for {what.rpartition('.')[2]} ({what})",
            where=where,
            fix="replace it by an estimator on https://onnx.ai/sklearn-onnx/supported.html, or leave that "
            "step to the code before the model",
        )
    shown = lines[0][:300] if lines else "no reason given"
    return StepError(
        f"{type(estimator).__name__} can't be converted: {type(error).__name__}: {shown}",
        where=where,
        fix="see that `dummy_inputs` has the inputs that it was fitted on: types, columns and their order",
    )


@contextmanager
def _plain_integers() -> Iterator[None]:
    """Booleans among integer attributes as 0 and 1, while skl2onnx converts.

    skl2onnx 1.20 mixes both in `nodes_missing_value_tracks_true` of histogram gradient boosting, which
    protobuf takes up to version 6 and refuses from 7 on.
    """
    from skl2onnx.common._container import ModelComponentContainer

    original = ModelComponentContainer.add_node

    def add_node(self: Any, *args: Any, **attributes: Any) -> Any:
        plain = {
            name: [int(each) if isinstance(each, bool) else each for each in value]
            if isinstance(value, list)
            else value
            for name, value in attributes.items()
        }
        return original(self, *args, **plain)

    ModelComponentContainer.add_node = add_node
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        ModelComponentContainer.add_node = original


def _register_boosters(where: str) -> None:
    """Make onnxmltools' converters known to skl2onnx, for the packages that are loaded."""
    loaded = [name for name in ("xgboost", "lightgbm") if name in sys.modules]
    if not loaded:
        return
    from skl2onnx import update_registered_converter
    from skl2onnx.common.shape_calculator import (
        calculate_linear_classifier_output_shapes as classifier_shapes,
    )
    from skl2onnx.common.shape_calculator import (
        calculate_linear_regressor_output_shapes as regressor_shapes,
    )

    zipmap = {"nocl": [True, False], "zipmap": [True, False, "columns"]}
    try:
        import onnxmltools.convert  # noqa: F401
    except ModuleNotFoundError as error:
        raise StepError(
            f"models of {loaded[0]} need onnxmltools, which is not installed",
            where=where,
            fix="pip install onnxmltools",
        ) from error
    if "xgboost" in loaded:
        import xgboost
        from onnxmltools.convert.xgboost.operator_converters.XGBoost import convert_xgboost

        for kind in (xgboost.XGBClassifier, xgboost.XGBRFClassifier):
            update_registered_converter(
                kind, f"XGBoost{kind.__name__}", classifier_shapes, convert_xgboost, options=zipmap
            )
        for kind in (xgboost.XGBRegressor, xgboost.XGBRFRegressor):
            update_registered_converter(
                kind, f"XGBoost{kind.__name__}", regressor_shapes, convert_xgboost
            )
    if "lightgbm" in loaded:
        import lightgbm
        from onnxmltools.convert.lightgbm.operator_converters.LightGbm import convert_lightgbm

        classifier, regressor = booster_types()
        for kind in (lightgbm.LGBMClassifier, classifier):
            update_registered_converter(
                kind,
                f"LightGbm{kind.__name__}",
                classifier_shapes,
                convert_lightgbm,
                options=zipmap,
            )
        for kind in (lightgbm.LGBMRegressor, regressor):
            update_registered_converter(
                kind,
                f"LightGbm{kind.__name__}",
                regressor_shapes,
                convert_lightgbm,
                options={"split": None},
            )


def _one_import_a_domain(model: onnx.ModelProto, opset: int) -> None:
    """skl2onnx imports some domains twice, in the order of a set."""
    versions = {"": opset}
    for each in model.opset_import:
        domain = "" if each.domain == "ai.onnx" else each.domain
        versions[domain] = max(each.version, versions.get(domain, 1))
    del model.opset_import[:]
    for domain, version in sorted(versions.items()):
        model.opset_import.add(domain=domain, version=version)


def _settle_locales(model: onnx.ModelProto) -> None:
    """Give StringNormalizer a locale that is there: few machines have its default, en_US.UTF-8.

    Letters beyond ASCII need another than C for their case; where no word of the vocabulary has such, they
    decide nothing.
    """
    texts = [
        each
        for node in model.graph.node
        for attribute in node.attribute
        for each in attribute.strings
    ]
    locale = _C if all(text.isascii() for text in texts) else _C_UNICODE
    for node in model.graph.node:
        if node.op_type == "StringNormalizer":
            kept = [each for each in node.attribute if each.name != "locale"]
            del node.attribute[:]
            node.attribute.extend(kept)
            node.attribute.add(name="locale", type=3, s=locale.encode())


def _fit_outputs(
    model: onnx.ModelProto,
    outputs: Sequence[EstimatorOutput],
    probe: tuple[Feeds, Mapping[str, np.ndarray]],
    where: str,
) -> dict[str, str]:
    """Give the graph's outputs the shapes and types of the estimator's own, in place.

    Returns: Name in the graph -> name of the output.

    Raises:
        StepError: An output is no tensor, or of another shape.
    """
    from onnx import TensorProto, helper

    made = [value.name for value in model.graph.output]
    for value in model.graph.output:
        if not value.type.HasField("tensor_type"):
            raise StepError(
                f"output '{value.name}' of the converted graph is a {value.type.WhichOneof('value')[:-5]}; "
                "outputs are tensors",
                where=where,
                fix="convert it in a callable of yours with `options={'zipmap': False}`, and write "
                "`frontend: onnx`",
            )
    found = dict(zip(made, _run(model, probe[0], where), strict=True))
    del model.graph.output[:]
    names = {}
    for each in outputs:
        if each.number >= len(made):
            continue  # the converter does not give it
        name, expected = made[each.number], probe[1][each.name]
        last = _fitted(model, name, found[name], expected, shown=each.name, where=where)
        shape = [None, *expected.shape[1:]]
        is_text = expected.dtype.kind == "U"
        kind = TensorProto.STRING if is_text else helper.np_dtype_to_tensor_dtype(expected.dtype)
        model.graph.output.append(helper.make_tensor_value_info(last, kind, shape))
        names[last] = each.name
    return names


def _fitted(
    model: onnx.ModelProto,
    name: str,
    found: np.ndarray,
    expected: np.ndarray,
    *,
    shown: str,
    where: str,
) -> str:
    """Add the nodes that make an array of the expected rank and type; returns the last one's output.

    A column loses its axis; of two columns of scores, one for each class, the second stays, as in
    `decision_function`.

    Raises:
        StepError: The shapes have nothing in common.
    """
    import numpy as np
    from onnx import helper, numpy_helper

    def add(operator: str, constant: np.ndarray | None = None, **attributes: Any) -> None:
        nonlocal name
        made = f"{name}_{operator.lower()}"
        sources = [name]
        if constant is not None:
            sources.append(f"{made}_with")
            model.graph.initializer.append(numpy_helper.from_array(constant, sources[-1]))
        model.graph.node.append(helper.make_node(operator, sources, [made], **attributes))
        name = made

    shape = found.shape
    if expected.ndim == 1 and found.ndim == 2 and shape[1] == 1:  # noqa: PLR2004
        add("Reshape", np.array([-1]))
        shape = shape[:1]
    elif expected.ndim == 1 and found.ndim == 2 and shape[1] == 2:  # noqa: PLR2004
        add("Gather", np.array(1), axis=1)
        shape = shape[:1]
    if shape != expected.shape:
        raise StepError(
            f"the converted graph gives '{shown}' the shape {list(found.shape)}; the estimator gives "
            f"{list(expected.shape)}",
            where=where,
            fix=f"leave '{shown}' out of `outputs`",
        )
    if found.dtype != expected.dtype and expected.dtype.kind != "U":
        add("Cast", to=helper.np_dtype_to_tensor_dtype(expected.dtype))
    return name


def _run(model: onnx.ModelProto, feeds: Feeds, where: str) -> list[np.ndarray]:
    import onnxruntime

    from onnxbuild.onnxkit.sessions.open import first_line, session_errors

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # shapes that converters write wrong are put right here
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    texts = {n: a.astype(object) if a.dtype.kind == "U" else a for n, a in feeds.items()}
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        names = [value.name for value in session.get_inputs()]
        found: list[np.ndarray] = session.run(None, {name: texts[name] for name in names})
    except session_errors() as error:
        is_wide = any(array.dtype == "float64" for array in feeds.values())
        raise StepError(
            f"ONNX Runtime refuses what the converter made: {first_line(error)}",
            where=where,
            fix="write `dtype: float32` for the inputs: classifiers of trees give no float64"
            if is_wide
            else "take an estimator, or options of it, that the converter supports",
        ) from error
    return found
