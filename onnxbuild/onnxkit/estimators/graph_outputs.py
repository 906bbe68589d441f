"""Give a converted graph the outputs of its estimator: their shapes and types, tensors all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.estimators.outputs import EstimatorOutput
from onnxbuild.onnxkit.sessions.open import first_line, session_errors

if TYPE_CHECKING:
    import numpy as np
    import onnx


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
    import onnxruntime

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
