"""JAX: a function, or a function and its parameters, converted by jax2onnx and held against JAX."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.draft import Draft
from onnxbuild.core.params import option
from onnxbuild.expansion.model_source import ModelSource, SourceFacts
from onnxbuild.frontend_steps.converted import Conversion, converting_frontend
from onnxbuild.onnxkit.converters.options import ENVIRONMENT_HELP, FrameworkEnvironment, built_in
from onnxbuild.onnxkit.data.completed_axes import BATCH, completed_axes
from onnxbuild.regular_files import read_user_file
from onnxbuild.steps import convert_model, framework_reference

_LAST_OPSET = 23


@dataclass(frozen=True, slots=True)
class JaxOptions:
    """Keys next to `jax` in `model`, besides those of a callable."""

    environment: FrameworkEnvironment | None = option(None, help=ENVIRONMENT_HELP)


def _no_look(path: Path) -> None:
    """Nothing: a callable is read as one."""
    raise AssertionError(path)


def _no_read(path: Path, *_: object) -> SourceFacts:
    """Nothing: the recipe says what its function takes."""
    raise AssertionError(path)


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


FEATURE = converting_frontend(
    "jax",
    Conversion(
        convert=convert_model.JAX,
        reference=framework_reference.JAX,
        environment=built_in("jax.txt", "jax", "jax2onnx"),
        baseline="jax",
        last_opset=_LAST_OPSET,
        is_traced=True,
    ),
    ModelSource(
        help="FILE.py:CALLABLE, relative to this file, which returns a function of JAX arrays, or (function, params)",
        options=JaxOptions,
        look=_no_look,
        read=_no_read,
        is_callable=True,
        draft=_draft,
    ),
)
