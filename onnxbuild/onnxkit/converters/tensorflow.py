"""Convert and run SavedModels and files of TensorFlow Lite by TensorFlow and tf2onnx; this module runs in their environment."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.converters.child import (
    Refused,
    Request,
    first_line,
    read_arrays,
    write_arrays,
)

if TYPE_CHECKING:
    import numpy as np


Feeds = Mapping[str, "np.ndarray"]

_OUT_OF_TABLE = re.compile(r"= (-?\d+) is not in \[0, (\d+)\)")
"""TensorFlow's error for an index that a table lacks."""

_REWRITE = "write the model without these operations, or choose a signature that stops before them; see the step's log"


def convert_saved_model(request: Request) -> dict[str, Any]:
    """Convert a signature to ONNX.

    Args:
        request: `folder`, `tags`, `signature`, `inputs` and `outputs` (its names), `opset`, and `model`: the
            file to write.

    Returns: `versions`: of TensorFlow and tf2onnx.

    Raises:
        Refused: tf2onnx has no operators for it, or does not write this opset.
    """
    import tf2onnx
    from tf2onnx import tf_loader

    tensorflow = one_thread()
    check_opset(request["opset"])
    with _no_custom_operators(tensorflow):
        graph, inputs, outputs, tables, names = tf_loader.from_saved_model(
            request["folder"],
            None,
            None,
            request["tags"],
            [request["signature"]],
            return_initialized_tables=True,
            return_tensors_to_rename=True,
        )
    model = converted(
        graph,
        request["opset"],
        input_names=inputs,
        output_names=outputs,
        tensors_to_rename=names,
        initialized_tables=tables,
    )
    check_names(model, request)
    Path(request["model"]).write_bytes(model.SerializeToString())
    return {"tensorflow": tensorflow.__version__, "tf2onnx": tf2onnx.__version__}


def compute_saved_model(request: Request) -> None:
    """Run a signature.

    Args:
        request: `folder`, `tags`, `signature`; `feeds` and `computed` as run_there.computed_there says.

    Raises:
        Refused: It fails on them.
    """
    tensorflow = one_thread()
    bind = _signature(tensorflow, request)
    compute_all(tensorflow, lambda feeds: bind(feeds)(), request)


def open_saved_model(request: Request) -> Callable[[Feeds], Callable[[], object]]:
    """Return what binds feeds to a call of a signature, as its users run it.

    Args:
        request: `folder`, `tags`, `signature`, and `threads`: how many it may take.

    Raises:
        Refused: It has operators that TensorFlow does not have.
    """
    return _signature(threaded(request["threads"]), request)


def _signature(
    tensorflow: Any, request: Request
) -> Callable[[Feeds], Callable[[], dict[str, np.ndarray]]]:
    with _no_custom_operators(tensorflow):
        loaded = tensorflow.saved_model.load(request["folder"], tags=request["tags"])
    signature = loaded.signatures[request["signature"]]
    taken = signature.structured_input_signature[1]

    def bind(feeds: Feeds) -> Callable[[], dict[str, np.ndarray]]:
        given = {
            name: tensorflow.constant(array, dtype=taken[name].dtype if name in taken else None)
            for name, array in feeds.items()
        }
        return lambda: {name: each.numpy() for name, each in signature(**given).items()}

    bind.loaded = loaded  # type: ignore[attr-defined]  # whose variables a signature refers to weakly
    return bind


def threaded(threads: int) -> Any:
    """TensorFlow with so many threads within an operator; operators run one after the other."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    return tf


def one_thread() -> Any:
    """TensorFlow, on one thread: sums are the same on every machine of one kind."""
    tf = threaded(1)
    tf.keras.utils.set_random_seed(0)
    tf.config.experimental.enable_op_determinism()
    return tf


@contextlib.contextmanager
def _no_custom_operators(tensorflow: Any) -> Iterator[None]:
    """Refuse a model whose operators TensorFlow itself does not have.

    Raises:
        Refused: There are such.
    """
    try:
        yield
    except (tensorflow.errors.NotFoundError, FileNotFoundError) as error:
        if "not registered" not in str(error):
            raise
        found = re.search(r"Op type not registered '([^']+)'", str(error))
        name = f"'{found[1]}'" if found else "one of its own"
        raise Refused(
            f"the model has the operator {name}, which this TensorFlow does not have",
            "name an environment that has the package of that operator; only operators of TensorFlow "
            "itself can be converted",
        ) from error


def check_opset(opset: int) -> None:
    """See that tf2onnx writes an opset.

    Raises:
        Refused: It does not.
    """
    from tf2onnx import constants

    least, most = constants.OPSET_TO_IR_VERSION, max(constants.OPSET_TO_IR_VERSION)
    if opset not in least:
        raise Refused(
            f"opset is {opset}; the tf2onnx that is installed writes at most {most}",
            f"write `opset: {min(most, 18)}`",
        )


def converted(graph: Any, opset: int, **names: Any) -> Any:
    """The ONNX model of a frozen graph, or of a file.

    Raises:
        Refused: There are operators that tf2onnx has none for.
    """
    import tensorflow as tf
    from tf2onnx import convert

    number_nodes()
    with tf.device("/cpu:0"), _only_supported():
        model, _ = convert._convert_common(  # noqa: SLF001 - what its command line calls
            graph,
            name="model",
            target=[],
            opset=opset,
            custom_op_handlers={"Erfc": (erfc, [])},
            **names,
        )
    _check_operators(model)
    return model


def check_names(model: Any, request: Request) -> None:
    """See that the converted model has the signature's inputs and outputs.

    Raises:
        Refused: It lacks one.
    """
    for kind, values in (("input", model.graph.input), ("output", model.graph.output)):
        found = {value.name for value in values}
        lost = [name for name in request[f"{kind}s"] if name not in found]
        if lost:
            raise Refused(
                f"the converted model has no {kind} '{lost[0]}'; it has {', '.join(sorted(found))}",
                "export the signature again: `tf.saved_model.save(model, FOLDER, signatures=FUNCTION)`",
            )


def compute_all(tensorflow: Any, run: Any, request: Request) -> None:
    """Run a model on all feeds of a request, and write what it computes.

    Args:
        run: Feeds -> output -> array.
        request: `feeds` and `computed` as run_there.computed_there says.

    Raises:
        Refused: It fails on them.
    """
    for source, target in zip(request["feeds"], request["computed"], strict=True):
        feeds = read_arrays(Path(source))
        try:
            computed = run(feeds)
        except (tensorflow.errors.OpError, TypeError, ValueError, RuntimeError) as error:
            raise _failed(error, feeds) from error
        write_arrays(Path(target), computed)


def _failed(error: Exception, feeds: Mapping[str, np.ndarray]) -> Refused:
    shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in feeds.items())
    said = first_line(getattr(error, "message", "") or str(error))
    found = _OUT_OF_TABLE.search(str(error))
    if found is None:
        fix = "declare the sizes and values that the model takes: `dummy_inputs`, `dynamic_axes`"
        return Refused(f"TensorFlow fails on {shapes}: {said}", fix)
    name = _input_with(feeds, int(found[1]))
    return Refused(
        f"TensorFlow fails on {shapes}: {said}",
        f"write `dummy_inputs: {{{name}: {{low: 0, high: {found[2]}}}}}`",
    )


def _input_with(feeds: Mapping[str, np.ndarray], value: int) -> str:
    """The input that holds a value; the first of integers where none does."""
    integers: Sequence[str] = [name for name, array in feeds.items() if array.dtype.kind in "iu"]
    holding = [name for name in integers if bool((feeds[name] == value).any())]
    return next(iter((*holding, *integers, *feeds)), "x")


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


def number_nodes() -> None:
    """Have sets of tf2onnx's nodes iterate in one order: by default a node's hash is its address.

    Which of several equal constants keeps its name depends on that order.
    """
    from tf2onnx.graph import Node

    if Node.__hash__ is not object.__hash__ or Node.__eq__ is not object.__eq__:
        return
    numbers = itertools.count()
    construct = Node.__init__

    def numbered(self: Any, *arguments: Any, **named: Any) -> None:
        self.onnxbuild_number = next(numbers)
        construct(self, *arguments, **named)

    Node.__init__ = numbered
    Node.__hash__ = lambda self: self.onnxbuild_number


def erfc(context: Any, node: Any, _name: str, _arguments: Any) -> Any:
    """Write `1 - erf(x)`, of which exact GELU is made: tf2onnx 1.17 has no Erfc."""
    import numpy as np
    from tf2onnx import utils

    (taken,), (output,) = node.input, node.output
    kind, shape = context.get_dtype(output), context.get_shape(output)
    context.remove_node(node.name)
    one = context.make_const(
        utils.make_name(f"{node.name}_one"), np.array(1, utils.map_onnx_to_numpy_type(kind))
    )
    erf = context.make_node("Erf", [taken], dtypes=[kind], shapes=[shape])
    return context.make_node(
        "Sub",
        [one.output[0], erf.output[0]],
        outputs=[output],
        name=node.name,
        dtypes=[kind],
        shapes=[shape],
    )


@contextlib.contextmanager
def _only_supported() -> Iterator[None]:
    """Report what tf2onnx raises for operations that it can't convert.

    Raises:
        Refused: It names them.
    """
    try:
        yield
    except (ValueError, RuntimeError, NotImplementedError) as error:
        what = f"tf2onnx can't convert the model: {first_line(str(error))}"
        raise Refused(what, _REWRITE) from error


def _check_operators(model: Any) -> None:
    """See that all operators are ONNX's: tf2onnx only logs those that it can't convert, and leaves them in the graph.

    Raises:
        Refused: Some are TensorFlow's.
    """
    import onnx

    versions = {each.domain: each.version for each in model.opset_import}
    unknown = {
        node.op_type
        for node in _nodes(model.graph)
        if node.domain in ("", "ai.onnx")
        and not _is_known(onnx, node.op_type, versions.get("", 1))
    }
    if unknown:
        raise Refused(f"tf2onnx has no ONNX for {', '.join(sorted(unknown))}", _REWRITE)


def _is_known(onnx: Any, name: str, version: int) -> bool:
    try:
        onnx.defs.get_schema(name, version, "")
    except onnx.defs.SchemaError:
        return False
    return True


def _nodes(graph: Any) -> Any:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)
