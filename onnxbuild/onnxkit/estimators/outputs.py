"""Outputs of an estimator: their names in recipes, and their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.user_code import call_user
from onnxbuild.onnxkit.frameworks import np, onnx, onnxruntime
from onnxbuild.onnxkit.sessions.open import first_line, session_errors

LABEL, PROBABILITIES, SCORES = "label", "probabilities", "scores"

PREDICTION, TRANSFORMED = "prediction", "transformed"


@dataclass(frozen=True, slots=True)
class EstimatorOutput:
    """One output of an estimator.

    Attributes:
        name: Name in the recipe.
        method: The method that computes it.
        number: Place among the converted graph's outputs.
    """

    name: str
    method: str
    number: int


UNKNOWN_CATEGORY = (
    "let it take any category: `OneHotEncoder(handle_unknown='ignore')`; or give each column an input of its own, "
    "with categories that it knows: `fill: [...]` in `dummy_inputs`"
)
"""The fix where an encoder refuses dummy values."""


def outputs_of(estimator: Any) -> tuple[EstimatorOutput, ...]:
    """Return the outputs of an estimator, in the order of the converted graph.

    A classifier gives `label`, and `probabilities` or else `scores`; a detector of outliers `label` and
    `scores`; a clustering `label` and, where it has them, `scores` (the distances); a regressor
    `prediction`; anything else `transformed`.
    """
    from sklearn.base import is_clusterer, is_outlier_detector, is_regressor

    def found(*pairs: tuple[str, str]) -> tuple[EstimatorOutput, ...]:
        there = [pair for pair in pairs if hasattr(estimator, pair[1])]
        return tuple(EstimatorOutput(*pair, number) for number, pair in enumerate(there))

    if is_regressor(estimator):
        return found((PREDICTION, "predict"))
    if is_outlier_detector(estimator):
        return found((LABEL, "predict"), (SCORES, "decision_function"))
    if is_clusterer(estimator):
        return found((LABEL, "predict"), (SCORES, "transform"))
    if hasattr(estimator, "predict_proba"):
        return found((LABEL, "predict"), (PROBABILITIES, "predict_proba"))
    if hasattr(estimator, "predict"):
        return found((LABEL, "predict"), (SCORES, "decision_function"))
    return found((TRANSFORMED, "transform"))


def named_outputs(
    estimator: Any, wanted: Sequence[str], where: str
) -> tuple[EstimatorOutput, ...]:
    """Return all of an estimator's outputs; under the recipe's names, if it has others.

    Args:
        wanted: The recipe's outputs: some of the estimator's own names, or as many others as it has
            outputs, which go by position; empty keeps its names.
        where: `recipe:step`.

    Raises:
        StepError: It has no such output, or none at all.
    """
    found = outputs_of(estimator)
    names = [each.name for each in found]
    if not found:
        raise StepError(
            f"{type(estimator).__name__} has none of predict, predict_proba and transform",
            where=where,
            fix="return an estimator, or a Pipeline that ends in one",
        )
    unknown = [name for name in wanted if name not in names]
    if not unknown:
        return found
    if len(unknown) == len(wanted) == len(found):
        return tuple(replace(each, name=name) for each, name in zip(found, wanted, strict=True))
    raise StepError(
        f"{type(estimator).__name__} has no output '{unknown[0]}'; it has {', '.join(names)}",
        where=where,
        fix=did_you_mean(unknown[0], names) or f"write `outputs: [{', '.join(names)}]`",
    )


def compute(
    estimator: Any,
    outputs: Sequence[EstimatorOutput],
    inputs: Sequence[DummyInput],
    feeds: Feeds,
    where: str,
) -> dict[str, np.ndarray]:
    """Compute the outputs by the estimator itself, in the types of its ONNX model.

    Labels are int64 or strings; floats are float64 if an input is, else float32.

    Raises:
        StepError: It fails, or an output is a list or of objects.
    """
    data = as_rows(estimator, inputs, feeds, where)
    wide = any(each.dtype == "float64" for each in inputs)
    found = {}
    for each in outputs:
        made = _called(estimator, each.method, data, where)
        found[each.name] = _as_array(estimator, each, made, wide=wide, where=where)
    return found


def _called(estimator: Any, method: str, data: Any, where: str) -> Any:
    from joblib import parallel_config

    target = f"{type(estimator).__name__}.{method}"
    with parallel_config(backend="sequential"):  # threads would add in an order of their own
        try:
            return call_user(
                lambda: getattr(estimator, method)(data), target, where, owner="the estimator's"
            )
        except StepError as error:
            fix = (
                "fit it on what it will be fed with: `X.astype('float32')`"
                if "dtype mismatch" in error.what
                else UNKNOWN_CATEGORY
                if "unknown categories" in error.what
                else "give the inputs what it was fitted on: types and shapes in `dummy_inputs`, values by "
                "`low`, `high` or `fill: [...]`"
            )
            raise StepError(error.what, where=where, fix=fix) from error


def as_rows(estimator: Any, inputs: Sequence[DummyInput], feeds: Feeds, where: str) -> Any:
    """Feeds in the form that an estimator takes: an array, a list of texts, or a table by column.

    Raises:
        StepError: There are several inputs, and pandas is not installed.
    """
    arrays = {each.name: feeds[each.name] for each in inputs}
    objects = {
        name: array.astype(object) if array.dtype.kind == "U" else array
        for name, array in arrays.items()
    }
    if len(objects) == 1:
        (array,) = objects.values()
        is_text = array.dtype.kind == "O" and array.ndim == 1
        return array.tolist() if is_text else array
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise StepError(
            f"{type(estimator).__name__} takes {len(objects)} columns by name, which needs pandas",
            where=where,
            fix="pip install pandas",
        ) from error
    wide = next((n for n, array in objects.items() if array.size != len(array)), None)
    if wide is not None:
        raise StepError(
            f"input '{wide}' has the shape {list(objects[wide].shape)}; of several inputs each is a column",
            where=where,
            fix=f"write `dummy_inputs: {{{wide}: {{shape: [batch, 1]}}}}`",
        )
    return pd.DataFrame({name: np.ravel(array) for name, array in objects.items()})


def _as_array(
    estimator: Any, output: EstimatorOutput, made: Any, *, wide: bool, where: str
) -> np.ndarray:
    from sklearn.base import is_classifier, is_regressor

    if hasattr(made, "toarray"):
        made = made.toarray()
    several = "several targets can't be converted: make one estimator of each"
    if isinstance(made, (list, tuple)):
        raise StepError(
            f"{type(estimator).__name__}.{output.method} gives a list of {len(made)} arrays",
            where=where,
            fix=several,
        )
    array: np.ndarray = np.asarray(made)
    kind = array.dtype.kind
    if kind == "f" and output.method == "predict" and array.ndim > 1 and is_classifier(estimator):
        raise StepError(
            f"{type(estimator).__name__}.predict gives {array.shape[1]} labels a row",
            where=where,
            fix=several,
        )
    if kind == "f" and output.method == "predict" and not is_regressor(estimator):
        raise StepError(
            f"the labels of {type(estimator).__name__} are {array.dtype}",
            where=where,
            fix="fit it on integers or strings: `y.astype(int)`",
        )
    if kind in "biu":
        return array.astype(np.int64)
    if kind == "f":
        return array.astype(np.float64 if wide else np.float32)
    if kind == "U" or (kind == "O" and all(isinstance(each, str) for each in array.ravel())):
        return array.astype(np.str_)
    raise StepError(
        f"{type(estimator).__name__}.{output.method} gives {array.dtype}",
        where=where,
        fix="fit it on integers or strings",
    )


def fit_outputs(
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

    A column loses its axis; of two columns of scores, one for each class, the one stays that
    `decision_function` gives.

    Raises:
        StepError: The shapes have nothing in common.
    """
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
        apart = np.abs(found - expected[:, None]).max(axis=0)
        add("Gather", np.array(int(apart.argmin())), axis=1)
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
            fix="write `dtype: float32` for the inputs: ONNX Runtime's trees give no float64"
            if is_wide
            else "take an estimator, or options of it, that the converter supports",
        ) from error
    return found
