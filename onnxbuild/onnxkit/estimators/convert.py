"""Convert an estimator to ONNX: skl2onnx, with onnxmltools' converters for boosters."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.estimators.booster_converters import register_boosters, settle_boosters
from onnxbuild.onnxkit.estimators.categories import add_exact_categories
from onnxbuild.onnxkit.estimators.columns import join_columns, matrix_of, widen_inputs, wider
from onnxbuild.onnxkit.estimators.graph_outputs import fit_outputs
from onnxbuild.onnxkit.estimators.outputs import EstimatorOutput
from onnxbuild.onnxkit.model.locales import settle_locales

if TYPE_CHECKING:
    import numpy as np
    import onnx

_ML = "ai.onnx.ml"
_ML_OPSET = 3
"""The last that skl2onnx writes."""

_WORD = r"[\p{L}\p{N}_]{2,}"
r"""RE2's pattern for words that `(?u)\b\w\w+\b` finds in Python."""

_UNSUPPORTED = re.compile(
    r"not supported|can ?not convert|Unexpected objective|objective should", re.IGNORECASE
)
"""Words of converters on what an estimator does, not on what it is given."""


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
