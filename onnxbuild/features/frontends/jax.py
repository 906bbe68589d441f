"""JAX: a function, or a function and its parameters, converted by jax2onnx and held against JAX."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.params import option
from onnxbuild.expansion.converted import Conversion, built_in, converting_frontend
from onnxbuild.expansion.model_source import FrameworkEnvironment, ModelSource, SourceFacts
from onnxbuild.steps import convert_model, framework_reference

_LAST_OPSET = 23


@dataclass(frozen=True, slots=True)
class JaxOptions:
    """Keys next to `jax` in `model`, besides those of a callable."""

    environment: FrameworkEnvironment | None = option(
        None,
        help="where JAX and jax2onnx are installed; left out: a virtual environment of 1.1 GB that is made "
        "once",
    )


def _no_look(path: Path) -> None:
    """Nothing: a callable is read as one."""
    raise AssertionError(path)


def _no_read(path: Path, *_: object) -> SourceFacts:
    """Nothing: the recipe says what its function takes."""
    raise AssertionError(path)


FEATURE = converting_frontend(
    "jax",
    Conversion(
        convert=convert_model.JAX,
        reference=framework_reference.JAX,
        environment=built_in("jax.txt", "jax", "jax2onnx"),
        last_opset=_LAST_OPSET,
        is_traced=True,
    ),
    ModelSource(
        help="FILE.py:CALLABLE, relative to this file, which returns a function of JAX arrays, or (function, params)",
        options=JaxOptions,
        look=_no_look,
        read=_no_read,
        is_callable=True,
    ),
)
