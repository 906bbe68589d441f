"""What the inputs of weighted nodes look like over data, in the form that GPTQ asks for.

For inputs x of a product with a weight, H = sum of x x^T is the Hessian of the squared error in
each of the weight's rows; GPTQ (Frantar et al., 2022, arXiv:2210.17323) goes by the upper Cholesky
factor of its inverse.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.feeds import Feeds
from onnxbuild.onnxkit.model_files import save_model
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


class HessianSums:
    """Sums H over samples; the products are taken inside the graph, one sample at a time.

    One thread, no graph optimization: the sums are the same each time on one kind of CPU.

    Args:
        model: Weights loaded; gets outputs added and is used up.
        scratch: A folder for the augmented model.
        where: `recipe:step`, for messages.
    """

    def __init__(self, model: onnx.ModelProto, *, scratch: Path, where: str) -> None:
        self.widths = input_widths(model)
        self.samples = 0
        self._where = where
        self._sums: dict[str, np.ndarray] = {}
        self._outputs = {name: f"onnxbuild/hessian/{n}" for n, name in enumerate(self.widths)}
        for name, output in self._outputs.items():
            _add_product(model, name, self.widths[name], output)
        save_model(model, scratch / "augmented")
        self._session = open_session(scratch / "augmented", optimize=False, where=where)

    def add(self, feeds: Iterable[Feeds]) -> None:
        """Run the model on each of the feeds.

        Raises:
            StepError: ONNX Runtime fails, or a value is NaN or infinite.
        """
        import numpy as np

        for sample in feeds:
            try:
                found = self._session.run(list(self._outputs.values()), sample)
            except session_errors() as error:
                raise StepError(
                    f"ONNX Runtime fails on calibration sample {self.samples}: {first_line(error)}",
                    where=self._where,
                    fix="see that the sample's sizes are ones the model takes",
                ) from error
            for name, product in zip(self._outputs, found, strict=True):
                if not np.isfinite(product).all():
                    raise StepError(
                        f"value '{name}' is not finite on calibration sample {self.samples}",
                        where=self._where,
                        fix="look for a division by zero, or data of another scale",
                    )
                total = self._sums.setdefault(name, np.zeros(product.shape))
                total += product
            self.samples += 1

    def write(self, folder: Path) -> None:
        """Write each factor as a .npy, and INDEX_FILE: value name -> file."""
        import numpy as np

        index = {}
        for n, name in enumerate(sorted(self._sums)):
            index[name] = f"{n}.npy"
            np.save(folder / index[name], inverse_factor(self._sums.pop(name)))
        write_report(folder, index, INDEX_FILE)


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
