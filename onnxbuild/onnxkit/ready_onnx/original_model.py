"""The model that a ready file was made of: a PyTorch module, or a function of named arrays."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import FILE_DATA, DummyInput, Entrypoint
from onnxbuild.core.step import REPORT_FILE, StepContext
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.user_code import an, call_user
from onnxbuild.onnxkit.export.torch_module import (
    as_module,
    call_callable,
    check_signature,
    load_module,
    run_module,
)
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.modules.inference import set_for_inference
from onnxbuild.onnxkit.modules.module_outputs import Returned, named_outputs
from onnxbuild.onnxkit.modules.stateful_module import stateful

Predict = Callable[[Feeds], dict[str, "np.ndarray"]]


def load_original(
    context: StepContext,
    entrypoint: Entrypoint,
    inputs: Sequence[DummyInput],
    outputs: Sequence[str],
    places: Sequence[str] = (),
) -> Predict:
    """Load the model that a user's callable returns or a file holds, as a function: named arrays -> named arrays.

    Args:
        entrypoint: A program's file, or the callable; it returns a torch.nn.Module, or a function that takes one array for each
            input, by name, and returns what a module's forward may, of arrays.
        inputs: Inputs that it is fed with.
        outputs: Names of the outputs; see `named_outputs`.
        places: Names of all outputs of the file, in its order; see `named_outputs`.

    Raises:
        StepError: It returns neither, or takes other inputs.
    """
    is_file = entrypoint.target == FILE_DATA
    made = load_module(context, entrypoint) if is_file else call_callable(context, entrypoint)
    module = as_module(made, context.where)
    if module is not None:
        set_for_inference(module, entrypoint.target, context.where)
        if entrypoint.state:
            module = stateful(module, entrypoint.state, context.where)
        check_signature(module, inputs, context.where)
        return lambda feeds: (
            run_module(
                module,
                feeds,
                context.where,
                outputs,
                inputs=inputs,
                places=places,
                as_the_user=True,
            ).outputs
        )
    if not callable(made) or isinstance(made, type):
        raise StepError(
            f"{entrypoint.target} returned {an(made)}; expected a torch.nn.Module, or a function that takes "
            "named arrays and returns arrays",
            where=context.where,
            fix="return the module or the function itself"
            + (", an instance and not its class" if isinstance(made, type) else ""),
        )
    return lambda feeds: _called(
        made, feeds, f"what {entrypoint.target} returned", context.where, outputs, places=places
    )


def outputs_of_file(context: StepContext) -> tuple[str, ...]:
    """Return the names of all outputs of the file that was imported, in its order; empty without an input `config`."""
    if "config" not in context.input_names:
        return ()
    config = json.loads((context.input("config") / REPORT_FILE).read_text("utf-8"))
    return tuple(config["outputs"])


def _called(
    function: Callable[..., object],
    feeds: Feeds,
    who: str,
    where: str,
    outputs: Sequence[str],
    *,
    places: Sequence[str],
) -> dict[str, np.ndarray]:
    takes = ", ".join(feeds)
    value = call_user(
        lambda: function(**{name: array.copy() for name, array in feeds.items()}),
        who, where, owner="the reference's", takes=takes,
    )  # fmt: skip
    by = Returned("the function", (np.ndarray, np.generic), "array", "numpy.ndarray")
    found = named_outputs(value, outputs, where, inputs=feeds, returned=by, places=places)
    return {name: np.array(array, order="C") for name, array in found.items()}


def in_types_of(
    found: Mapping[str, np.ndarray], dtypes: Mapping[str, str]
) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Outputs in the widths that a model gives them, and names of those that had another.

    A converter narrows float64 to float32 and int64 to int32, or the other way round; another kind of type is
    left, and found to be another.

    Args:
        dtypes: Output -> the model's, as numpy spells it.
    """
    fitted: dict[str, np.ndarray] = {}
    changed: list[str] = []
    for name, array in found.items():
        wanted = np.dtype(dtypes.get(name, array.dtype))
        same_kind = array.dtype.kind == wanted.kind and array.dtype.kind in "fiu"
        fitted[name] = array.astype(wanted) if same_kind and array.dtype != wanted else array
        if fitted[name] is not array:
            changed.append(name)
    return fitted, tuple(changed)
