"""JAX: a function, or a function and its parameters, converted by jax2onnx and held against JAX."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.draft import Draft
from onnxbuild.core.params import option
from onnxbuild.expansion.model_source import ModelSource
from onnxbuild.frontend_steps.converted import framework_frontend
from onnxbuild.onnxkit.converters.frameworks import ENVIRONMENT_HELP, JAX, FrameworkEnvironment
from onnxbuild.onnxkit.sources.parts import BATCH, completed_axes
from onnxbuild.regular_files import read_user_file


@dataclass(frozen=True, slots=True)
class JaxOptions:
    """Keys next to `jax` in `model`, besides those of a callable."""

    environment: FrameworkEnvironment | None = option(None, help=ENVIRONMENT_HELP)


def _draft(file: Path, name: str) -> Draft | None:
    """A recipe whose inputs have the names of the function's arguments, and shapes to fill in."""
    from onnxbuild.onnxkit.converters.jax_draft import jax_arguments

    names = jax_arguments(read_user_file(file), name)
    if names is None:
        return None
    inputs = {each: {"dtype": "float32", "shape": [BATCH, 1]} for each in names or ("x",)}
    recipe = {
        "dummy_inputs": inputs,
        "dynamic_axes": completed_axes([[BATCH]], {}),
    }
    hole = f"type and shape of what {name}'s function takes"
    return Draft(
        recipe,
        {"dynamic_axes": "a usual range"},
        {f"dummy_inputs.{each}": hole for each in inputs},
    )


FEATURE = framework_frontend(
    JAX,
    ModelSource(
        help="FILE.py:CALLABLE, relative to this file, which returns a function of JAX arrays, or (function, params)",
        options=JaxOptions,
        is_callable=True,
        draft=_draft,
    ),
    "jax",
    is_traced=True,
)
