"""What freezes a size is named with its line of the user's file."""

from pathlib import Path

import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.steps import export
from tests.fakes.step_context import run_step

MODULES = Path(__file__).parent / "baking_modules.py"
INPUTS = (DummyInput("x", "float32", ("batch", 16, "height", "width")),)
AXES = (Axis("batch", 1, 8, 2), Axis("height", 4, 64, 12), Axis("width", 4, 64, 20))


def refused(folder, name, exporter):
    params = export.ExportParams(
        Entrypoint(f"{MODULES}:load", {"name": name}),
        INPUTS,
        (),
        AXES,
        18,
        None,
        export.ExportOptions(exporter=exporter),
    )
    with pytest.raises(StepError) as caught:
        run_step(export.KIND, params, folder)
    return caught.value


def line_of(name):
    """Where a module's `# freezes` is."""
    lines = MODULES.read_text(encoding="utf-8").splitlines()
    start = lines.index(f"class {name}(nn.Module):")
    return next(n for n, text in enumerate(lines, 1) if n > start and "# freezes" in text)


@pytest.mark.parametrize(
    ("name", "operator"), [("ReadsRows", "Reshape"), ("Loops", "Add"), ("Resizes", "Concat")]
)
def test_a_frozen_size_is_named_with_its_line(tmp_path, capfd, name, operator):
    error = refused(tmp_path, name, "torchscript")
    place = f"baking_modules.py:{line_of(name)}"
    assert error.where.endswith(place)
    assert f"{place} was exported for one size alone ({operator})" in error.what
    assert "baked into the graph" in error.what
    assert "Exported graph" not in capfd.readouterr().out


def test_a_pooling_that_cant_be_translated_is_named_with_its_line(tmp_path):
    error = refused(tmp_path, "Pools", "torchscript")
    assert error.where.endswith(f"baking_modules.py:{line_of('Pools')}")
    assert error.what == (
        "the torchscript exporter can't translate this use of 'adaptive_avg_pool2d': input size not "
        "accessible"
    )
    assert error.fix.startswith("pool to a size of 1, or declare the pooled sizes as numbers")
