"""Convert an estimator to ONNX: skl2onnx, with onnxmltools' converters for boosters."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.estimators.boosters import (
    add_exact_categories,
    register_boosters,
    settle_boosters,
)
from onnxbuild.onnxkit.estimators.outputs import EstimatorOutput, fit_outputs
from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.scopes import rename_reads
from onnxbuild.onnxkit.ready_onnx.written_out import settle_locales

_ML = "ai.onnx.ml"

_ML_OPSET = 3
"""The last that skl2onnx writes."""

_WORD = r"[\p{L}\p{N}_]{2,}"
r"""RE2's pattern for words that `(?u)\b\w\w+\b` finds in Python."""

_UNSUPPORTED = re.compile(
    r"not supported|can ?not convert|Unexpected objective|objective should", re.IGNORECASE
)
"""Words of converters on what an estimator does, not on what it is given."""

MATRIX = "onnxbuild_table"
"""Name of the matrix in the graph."""

_FLOATS = ("float64", "float32")


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
        outputs: Outputs of the estimator, all of them.
        inputs: Inputs, as the recipe declares them.
        opset: Opset of ONNX's default domain.
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
    register_boosters(where)
    settle_boosters(parts_of(estimator), where)
    _mend_converters()
    matrix = matrix_of(parts_of(estimator), inputs)
    taken = [matrix] if matrix is not None else [wider(each) for each in inputs]
    types = [(each.name, _type(each, where)) for each in taken]
    texts = _text_options(estimator)

    def converted(options: Mapping[Any, Mapping[str, object]]) -> onnx.ModelProto:
        model: onnx.ModelProto = skl2onnx.convert_sklearn(
            estimator,
            name="main_graph",
            initial_types=types,
            options={**texts, **options},
            target_opset={"": opset, _ML: _ML_OPSET},
        )
        return model

    with external_code(lambda error: _refusal(estimator, error, where)), _plain_integers():
        try:
            model = converted({id(estimator): {"zipmap": False}})
        except NameError:  # what gives no probabilities has no such option
            model = converted({})
    if matrix is not None:
        join_columns(model, inputs, matrix)
    else:
        widen_inputs(model, inputs)
    _one_import_a_domain(model, opset)
    settle_locales(model)
    return model, fit_outputs(model, outputs, probe, where)


def _mend_converters() -> None:
    """Let LinearSVC take the option that skl2onnx 1.20 asks it for, and refuses then; and OneHotEncoder know whole numbers alone."""
    from skl2onnx import update_registered_converter
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes
    from skl2onnx.operator_converters.linear_classifier import convert_sklearn_linear_classifier
    from skl2onnx.shape_calculators.one_hot_encoder import (
        calculate_sklearn_one_hot_encoder_output_shapes,
    )
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.svm import LinearSVC

    update_registered_converter(
        OneHotEncoder,
        "SklearnOneHotEncoder",
        calculate_sklearn_one_hot_encoder_output_shapes,
        add_exact_categories,
    )

    update_registered_converter(
        LinearSVC,
        "SklearnLinearSVC",
        calculate_linear_classifier_output_shapes,
        convert_sklearn_linear_classifier,
        options={
            "nocl": [True, False],
            "output_class_labels": [False, True],
            "raw_scores": [True, False],
            "zipmap": [True, False],
        },
    )


def _text_options(estimator: Any) -> dict[Any, dict[str, object]]:
    """Options for vectorizers of words: scikit-learn's own default pattern, letters beyond ASCII included.

    skl2onnx takes ASCII letters alone, and words of one letter, which are between the two of a pair of words.
    """
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

    return {
        id(each): {"tokenexp": _WORD}
        for each in parts_of(estimator)
        if isinstance(each, (CountVectorizer, TfidfVectorizer))
        and each.analyzer == "word"
        and each.token_pattern == CountVectorizer().token_pattern
    }


def parts_of(estimator: Any) -> Iterator[Any]:
    """An estimator and those inside of it, as they were fitted."""
    yield estimator
    pairs = [*getattr(estimator, "steps", ()), *getattr(estimator, "transformer_list", ())]
    pairs += getattr(estimator, "transformers_", ())
    for pair in pairs:
        yield from parts_of(pair[1])
    for each in _held(estimator):
        yield from parts_of(each)


def _held(estimator: Any) -> list[Any]:
    """Return the fitted estimators in a search, a vote, a stack, a calibration or an ensemble."""
    held = [each.estimator for each in getattr(estimator, "calibrated_classifiers_", ())]
    names = ("best_estimator_", "final_estimator_")
    held += [getattr(estimator, name) for name in names if hasattr(estimator, name)]
    several = getattr(estimator, "estimators_", ())
    return [*held, *(several.ravel() if hasattr(several, "ravel") else several)]


def _type(each: DummyInput, where: str) -> Any:
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
            where=where,
            fix=f"write `dummy_inputs: {{{each.name}: {{dtype: float32}}}}`",
        )
    return kinds[each.dtype]([size if isinstance(size, int) else None for size in each.shape])


def _refusal(estimator: Any, error: BaseException, where: str) -> StepError:
    from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator

    lines = [line.strip() for line in message_of(error).splitlines() if line.strip()]
    if isinstance(error, (MissingConverter, MissingShapeCalculator)):
        named = re.search(r"<class '([^']+)'>", " ".join(lines))
        what = named[1] if named else type(estimator).__name__
        return StepError(
            f"no converter to ONNX for {what.rpartition('.')[2]} ({what})",
            where=where,
            fix="replace it by an estimator on https://onnx.ai/sklearn-onnx/supported.html, or leave that "
            "step to the code before the model",
        )
    if isinstance(error, NotImplementedError) or _UNSUPPORTED.search(" ".join(lines)):
        fix = "take options of the estimator that its converter supports"
    else:
        fix = "see that `dummy_inputs` has the inputs that it was fitted on: types, columns and their order"
    shown = lines[0][:300] if lines else "no reason given"
    return StepError(
        f"{type(estimator).__name__} can't be converted: {type(error).__name__}: {shown}",
        where=where,
        fix=fix,
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


def _one_import_a_domain(model: onnx.ModelProto, opset: int) -> None:
    """skl2onnx imports some domains twice, in the order of a set."""
    versions = {"": opset}
    for each in model.opset_import:
        domain = "" if each.domain == "ai.onnx" else each.domain
        versions[domain] = max(each.version, versions.get(domain, 1))
    del model.opset_import[:]
    for domain, version in sorted(versions.items()):
        model.opset_import.add(domain=domain, version=version)


def matrix_of(parts: Iterable[Any], inputs: Sequence[DummyInput]) -> DummyInput | None:
    """Return the one input that a converter gets in place of several; None where it gets them as they are.

    Args:
        parts: The estimator and those inside of it.
        inputs: Inputs, as the recipe declares them.
    """
    from sklearn.compose import ColumnTransformer

    are_columns = all(len(each.shape) == 2 and each.shape[1] == 1 for each in inputs)  # noqa: PLR2004
    dtypes = {each.dtype for each in inputs}
    if len(inputs) == 1 or not are_columns or "string" in dtypes:
        return None
    if any(isinstance(each, ColumnTransformer) for each in parts):
        return None  # it chooses columns by their names
    dtype = next((each for each in _FLOATS if each in dtypes), "int64")
    return DummyInput(MATRIX, dtype, (inputs[0].shape[0], len(inputs)))


def wider(each: DummyInput) -> DummyInput:
    """Return an input as skl2onnx takes it: most of its converters refuse int32."""
    return replace(each, dtype="int64") if each.dtype == "int32" else each


def widen_inputs(model: onnx.ModelProto, inputs: Sequence[DummyInput]) -> None:
    """Give a graph that takes the wider inputs those of the recipe, in place."""
    from onnx import TensorProto, helper

    for each in inputs:
        if wider(each) == each:
            continue
        taken = f"{each.name}_as_int64"
        for node in model.graph.node:
            rename_reads(node, {each.name: taken})
        cast = helper.make_node("Cast", [each.name], [taken], to=TensorProto.INT64)
        model.graph.node.insert(0, cast)
        for value in model.graph.input:
            if value.name == each.name:
                value.type.tensor_type.elem_type = TensorProto.INT32


def join_columns(model: onnx.ModelProto, inputs: Sequence[DummyInput], matrix: DummyInput) -> None:
    """Give a graph that takes the matrix an input for each column, in place."""
    from onnx import helper

    def kind(dtype: str) -> int:
        return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    joined, nodes = [], []
    for each in inputs:
        joined.append(each.name)
        if each.dtype != matrix.dtype:
            joined[-1] = f"{each.name}_as_{matrix.dtype}"
            nodes.append(
                helper.make_node("Cast", [each.name], [joined[-1]], to=kind(matrix.dtype))
            )
    nodes += [helper.make_node("Concat", joined, [matrix.name], axis=1), *model.graph.node]
    del model.graph.input[:], model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.input.extend(
        helper.make_tensor_value_info(each.name, kind(each.dtype), [None, 1]) for each in inputs
    )


def refuse_unsupported(parts: Iterable[Any], where: str) -> None:
    """Check estimators for options that their converter ignores.

    Args:
        parts: An estimator and those inside of it, fitted.
        where: `recipe:step`.

    Raises:
        StepError: One has such an option.
    """
    for each in parts:
        fault = _fault(each)
        if fault:
            what, fix = fault
            raise StepError(f"{type(each).__name__} {what}", where=where, fix=fix)


def _fault(estimator: Any) -> tuple[str, str] | None:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    if isinstance(estimator, (OneHotEncoder, OrdinalEncoder)):
        if any(each is not None for each in getattr(estimator, "infrequent_categories_", ())):
            return (
                "has infrequent categories (`min_frequency`, `max_categories`), which skl2onnx does not group",
                "fit it without `min_frequency` and `max_categories`, or group rare values before the model",
            )
        if isinstance(estimator, OrdinalEncoder) and any(map(_has_missing, estimator.categories_)):
            return (
                "has a code for missing values (`encoded_missing_value`), which skl2onnx does not write",
                "fill missing values before it: `make_pipeline(SimpleImputer(...), OrdinalEncoder())`",
            )
    trees = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
    if isinstance(estimator, trees) and any(_or_empty(estimator.is_categorical_)):
        return (
            "has categorical features (`categorical_features`), which skl2onnx compares as numbers",
            "fit it with `categorical_features=None`, on columns that a OneHotEncoder made",
        )
    return None


def _has_missing(categories: Any) -> bool:
    """Return whether NaN or None is among the categories of a column."""
    return any(each is None or each != each for each in categories)  # noqa: PLR0124 - NaN


def _or_empty(flags: Any) -> Any:
    return () if flags is None else flags
