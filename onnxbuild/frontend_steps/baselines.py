"""The baselines that frontends give the benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from onnxbuild.core.graph import OutputRef
from onnxbuild.expansion.feature import Frontend
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.benchmark.baseline import PYTORCH, Baseline


def given_by(frontend: Frontend, scope: Scope, code: tuple[str, ...]) -> Baseline:
    """Return a frontend's baseline; PyTorch's, or none, of one that does not say.

    Args:
        frontend: Of the recipe.
        scope: The recipe.
        code: What stands for the code of a plug-in's frontend in a toolchain.
    """
    if frontend.baseline is not None:
        made = frontend.baseline(scope)
        return replace(made, toolchain=(*made.toolchain, *code))
    if frontend.gives_module:
        return Baseline(PYTORCH)
    return Baseline(absent=f"the frontend '{frontend.name}' has none")


def onnx_as_given(imported: Callable[[Scope], OutputRef]) -> Callable[[Scope], Baseline]:
    """Return the baseline of a model that is ONNX: in ONNX Runtime, without what onnxbuild does to it.

    Args:
        imported: Gives the model as it was, in its own opset.
    """
    return lambda scope: Baseline("onnx-as-given", model=imported(scope))
