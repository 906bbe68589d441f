"""Convert and run files of TensorFlow Lite by TensorFlow and tf2onnx; this module runs in their environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.converters.child import Request
from onnxbuild.onnxkit.converters.tensorflow import (
    Feeds,
    check_names,
    check_opset,
    compute_all,
    converted,
    one_thread,
    threaded,
)  # fmt: skip

if TYPE_CHECKING:
    import numpy as np


def convert_tflite(request: Request) -> dict[str, Any]:
    """Convert a file of TensorFlow Lite to ONNX.

    Args:
        request: `file`, `tensors` (name -> the tensor's own), `inputs`, `outputs`, `opset`, and `model`: the
            file to write.

    Returns: `versions`: of TensorFlow and tf2onnx.

    Raises:
        Refused: tf2onnx has no operators for it, or does not write this opset.
    """
    import tf2onnx

    tensorflow = one_thread()
    check_opset(request["opset"])
    tensors = request["tensors"]
    model = converted(
        None,
        request["opset"],
        tflite_path=request["file"],
        input_names=[tensors[name] for name in request["inputs"]],
        output_names=[tensors[name] for name in request["outputs"]],
        tensors_to_rename={tensor: name for name, tensor in tensors.items()},
    )
    check_names(model, request)
    Path(request["model"]).write_bytes(model.SerializeToString())
    return {"tensorflow": tensorflow.__version__, "tf2onnx": tf2onnx.__version__}


def compute_tflite(request: Request) -> None:
    """Run a file of TensorFlow Lite in its interpreter, by the kernels that it has without a delegate.

    Args:
        request: `file`, `tensors`, `inputs`, `outputs`; `feeds` and `computed` as run_there.computed_there says.

    Raises:
        Refused: It fails on them.
    """
    import warnings

    tensorflow = one_thread()
    warnings.simplefilter("ignore")  # it is to move to a package of its own
    lite = tensorflow.lite
    interpreter = lite.Interpreter(
        request["file"],
        num_threads=1,
        experimental_op_resolver_type=lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    compute_all(tensorflow, lambda feeds: _lite_call(interpreter, request, feeds)(), request)


def open_tflite(request: Request) -> Callable[[Feeds], Callable[[], object]]:
    """Return what binds feeds to a call of TensorFlow Lite's interpreter, as its users run it: with XNNPACK.

    Args:
        request: `file`, `tensors`, `inputs`, `outputs`, and `threads`: how many it may take.
    """
    import warnings

    tensorflow = threaded(request["threads"])
    warnings.simplefilter("ignore")  # it is to move to a package of its own

    def interpreter() -> Any:
        return tensorflow.lite.Interpreter(request["file"], num_threads=request["threads"])

    opened = [interpreter()]

    def bind(feeds: Feeds) -> Callable[[], object]:
        own = opened.pop() if opened else interpreter()  # each call's tensors keep their sizes
        return _lite_call(own, request, feeds)

    return bind


def _lite_call(
    interpreter: Any, request: Request, feeds: Feeds
) -> Callable[[], dict[str, np.ndarray]]:
    """A call of an interpreter, whose tensors get the feeds' sizes now."""
    tensors = request["tensors"]
    taken = {each["name"]: each["index"] for each in interpreter.get_input_details()}
    given = {each["name"]: each["index"] for each in interpreter.get_output_details()}
    for name, array in feeds.items():
        interpreter.resize_tensor_input(taken[tensors[name]], list(array.shape))
    interpreter.allocate_tensors()

    def run_once() -> dict[str, np.ndarray]:
        for name, array in feeds.items():
            interpreter.set_tensor(taken[tensors[name]], array)
        interpreter.invoke()
        return {
            name: interpreter.get_tensor(given[tensors[name]]).copy()
            for name in request["outputs"]
        }

    return run_once
