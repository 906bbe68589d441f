"""Hessians of the inputs of weighted nodes over data, as the factors that GPTQ asks for.

For inputs x of a product with a weight, H = sum of x x^T is the Hessian of the squared error in
each of the weight's rows. GPTQ (Frantar et al., 2022, arXiv:2210.17323) goes by the upper Cholesky
factor of its inverse; what it does is the same as feeding back what rounding did to earlier inputs by
the unit upper factor of H itself (Chee et al., 2023, arXiv:2307.13304, theorem 6), a quarter of the work.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.calibrate.memory_passes import budget_bytes, passes
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.reports import write_report

if TYPE_CHECKING:
    import numpy as np
    import onnx

    from onnxbuild.onnxkit.quantize.weight_only import Weighted

INDEX_FILE = "factors.json"

_DAMPING = 0.01
"""Share of the mean diagonal that is added to it, as GPTQ's authors do."""


def input_widths(model: onnx.ModelProto) -> dict[str, int]:
    """Value name -> its last axis's size, of all that MatMul and Gemm nodes multiply by a weight.

    Values of the main graph alone, nodes of nested graphs that capture one included: what an If or
    Loop computes inside can't be made an output.
    """
    widths = {}
    for each in rounded_nodes(model):
        if each.reads_main_graph:
            widths[each.node.input[0]] = each.dims[1 if each.transposed else 0]
    return widths


def rounded_nodes(model: onnx.ModelProto) -> list[Weighted]:
    """The nodes whose weights GPTQ rounds where their inputs can be observed: MatMul and Gemm."""
    from onnxbuild.onnxkit.quantize.weight_only import weighted_nodes

    return [each for each in weighted_nodes(model) if each.node.op_type != "Gather"]


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

    from onnxbuild.onnxkit.calibrate.channel_statistics import measure_moments

    numbers = {name: n for n, name in enumerate(sorted(widths))}
    budget = budget_bytes(load())
    for number, group in enumerate(passes(widths, budget)):
        probed = scratch / f"augmented-{number}"
        sums = measure_moments(load(), group, feeds(), scratch=probed, where=where)
        for name in group:
            factor: np.ndarray = feedback_factor(sums.pop(name)).astype(np.float32)
            np.save(folder / f"{numbers[name]}.npy", factor)
    index = {name: f"{n}.npy" for name, n in numbers.items()}
    write_report(folder, index, INDEX_FILE)


def read_factors(folder: Path) -> dict[str, Path]:
    """Value name -> the file of its factor, to be read when its turn comes."""
    index = json.loads((folder / INDEX_FILE).read_text(encoding="utf-8"))
    return {name: folder / file for name, file in index.items()}


def feedback_factor(hessian: np.ndarray) -> np.ndarray:
    """U of H = U D U^T after damping: unit upper triangular, float64.

    U[k, n] is what of a change of weight k has to be added to weight n, which is rounded later.

    By LAPACK on one thread: with more, the last digits depend on how many there are.

    Args:
        hessian: Symmetric, positive semidefinite, float64.
    """
    import torch

    damped = torch.from_numpy(hessian)
    damped = (damped + damped.T).div_(2)
    diagonal = damped.diagonal()
    diagonal[diagonal == 0] = 1  # an input that is always 0: any code will do
    diagonal += _DAMPING * diagonal.mean()
    damped = damped.flip(
        0, 1
    )  # the lower factor of what stands on its head, turned back, is upper
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        upper = torch.linalg.cholesky(damped).flip(0, 1)
    finally:
        torch.set_num_threads(threads)
    upper /= upper.diagonal().clone()
    factor: np.ndarray = upper.numpy()
    return factor
