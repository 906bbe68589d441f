"""What the inputs of weighted nodes look like over data, in the form that GPTQ asks for.

For inputs x of a product with a weight, H = sum of x x^T is the Hessian of the squared error in
each of the weight's rows; GPTQ (Frantar et al., 2022, arXiv:2210.17323) goes by the upper Cholesky
factor of its inverse.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.feeds import Feeds
from onnxbuild.onnxkit.model_files import save_graph
from onnxbuild.onnxkit.moment_passes import budget_bytes, passes
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions import first_line, open_session, session_errors
from onnxbuild.onnxkit.weight_only import weighted_nodes

if TYPE_CHECKING:
    import numpy as np
    import onnx

INDEX_FILE = "factors.json"

_DAMPING = 0.01
"""Share of the mean diagonal that is added to it, as GPTQ's authors do."""


def input_widths(model: onnx.ModelProto) -> dict[str, int]:
    """Value name -> its last axis's size, of all that MatMul and Gemm nodes multiply by a weight.

    Those of the main graph alone: what is inside of an If or Loop can't be made an output.
    """
    widths = {}
    dims = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    for each in weighted_nodes(model):
        if each.graph is model.graph and each.node.op_type != "Gather" and each.weight in dims:
            rows, columns = dims[each.weight]
            widths[each.node.input[0]] = columns if each.transposed else rows
    return widths


def write_factors(
    load: Callable[[], onnx.ModelProto],
    widths: Mapping[str, int],
    feeds: Callable[[], Iterable[Feeds]],
    folder: Path,
    *,
    scratch: Path,
    where: str,
) -> None:
    """Write each value's factor as a .npy, and INDEX_FILE: value name -> file.

    Values come in groups whose sums fit in memory together, each with a session of its own over
    all the data; the products are taken inside the graph, one sample at a time. One thread, no
    graph optimization: the sums are the same each time on one kind of CPU.

    Args:
        load: Gives the model anew, weights mapped.
        widths: Of `input_widths`.
        feeds: Gives the samples, anew each time it is called.
        folder: Where factors are written.
        scratch: A folder for augmented models.
        where: `recipe:step`, for messages.

    Raises:
        StepError: ONNX Runtime fails, or a value is NaN or infinite.
    """
    import numpy as np

    numbers = {name: n for n, name in enumerate(sorted(widths))}
    budget = budget_bytes(load())
    for number, group in enumerate(passes(widths, budget)):
        sums = _sums(load(), group, feeds(), scratch=scratch / f"augmented-{number}", where=where)
        for name in group:
            np.save(folder / f"{numbers[name]}.npy", inverse_factor(sums.pop(name)))
    index = {name: f"{n}.npy" for name, n in numbers.items()}
    write_report(folder, index, INDEX_FILE)


def _sums(
    model: onnx.ModelProto,
    widths: Mapping[str, int],
    feeds: Iterable[Feeds],
    *,
    scratch: Path,
    where: str,
) -> dict[str, np.ndarray]:
    """Value name -> H, float64."""
    import numpy as np

    outputs = {name: f"onnxbuild/hessian/{n}" for n, name in enumerate(widths)}
    for name, output in outputs.items():
        _add_product(model, name, widths[name], output)
    save_graph(model, scratch)
    del model
    session = open_session(scratch, optimize=False, lean=True, where=where)
    sums: dict[str, np.ndarray] = {}
    for sample, item in enumerate(feeds):
        try:
            found = session.run(list(outputs.values()), item)
        except session_errors() as error:
            raise StepError(
                f"ONNX Runtime fails on calibration sample {sample}: {first_line(error)}",
                where=where,
                fix="see that the sample's sizes are ones the model takes",
            ) from error
        for name, product in zip(outputs, found, strict=True):
            if not np.isfinite(product).all():
                raise StepError(
                    f"value '{name}' is not finite on calibration sample {sample}",
                    where=where,
                    fix="look for a division by zero, or data of another scale",
                )
            total = sums.setdefault(name, np.zeros(product.shape))
            total += product
    return sums


def read_factors(folder: Path) -> dict[str, Path]:
    """Value name -> the file of its factor, to be read when its turn comes."""
    index = json.loads((folder / INDEX_FILE).read_text(encoding="utf-8"))
    return {name: folder / file for name, file in index.items()}


def inverse_factor(hessian: np.ndarray) -> np.ndarray:
    """The upper Cholesky factor of the inverse of H, float32, after damping.

    By LAPACK on one thread: with more, the last digits depend on how many there are.

    Args:
        hessian: Symmetric, positive semidefinite, float64.
    """
    import numpy as np
    import torch

    damped = torch.from_numpy(hessian + hessian.T) / 2
    diagonal = damped.diagonal()
    diagonal[diagonal == 0] = 1  # an input that is always 0: any code will do
    diagonal += _DAMPING * diagonal.mean()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(damped))
        factor: np.ndarray = torch.linalg.cholesky(inverse, upper=True).numpy()
    finally:
        torch.set_num_threads(threads)
    return factor.astype(np.float32)


def _add_product(model: onnx.ModelProto, name: str, width: int, output: str) -> None:
    """x^T x over all axes but the last, as a graph output."""
    import numpy as np
    import onnx

    shape = onnx.numpy_helper.from_array(np.int64([-1, width]), f"{output}/shape")
    model.graph.initializer.append(shape)
    rows, columns = f"{output}/rows", f"{output}/columns"
    for op_type, inputs, made in (
        ("Reshape", [name, shape.name], rows),
        ("Transpose", [rows], columns),
        ("MatMul", [columns, rows], output),
    ):
        model.graph.node.append(onnx.helper.make_node(op_type, inputs, [made], made))
    model.graph.output.append(
        onnx.helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, [width, width])
    )
