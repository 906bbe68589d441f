"""`packages: {shared-weights: {}}`: a component and those that its inputs come from, over one file of weights."""

import json
import shutil
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.features.packages.shared_weights import FEATURE
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.write import write_sums
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.packages.package_run import RunParams
from tests.cli.conftest import QUICK, project  # noqa: F401 - a fixture
from tests.fakes.step_context import run_step

MODEL = """\
import torch


class Part(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Embedding(512, 64)
        self.scale = torch.nn.Parameter(torch.rand(64))


class Encoder(Part):
    def forward(self, ids):
        return self.table(ids) * self.scale


class Decoder(Part):
    def forward(self, ids, hidden):
        mixed = self.table(ids) + hidden * self.scale
        return mixed @ self.table.weight.T  # a tied head, which the exporter stores transposed
"""
RECIPE = """\
version: 1
name: pair
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 512}}
benchmark: {measure: false}
components:
  encoder: {model: models/pair.py:Encoder, outputs: [hidden]}
  decoder:
    model: models/pair.py:Decoder
    dummy_inputs: {hidden: {dtype: float32, shape: [batch, 64], from: encoder.hidden}}
    outputs: [out]
    packages: [shared-weights]
"""
TABLE_BYTES = 512 * 64 * 4


def run_of(package, reference, folder):
    """What the step that runs a package says."""
    params = RunParams("it", VariantTolerances(atol=1e-6, rtol=1e-5))
    return run_step(FEATURE.run, params, folder, {"package": package, "reference": reference})[0]


@pytest.mark.slow
def test_two_graphs_and_a_tied_head_over_one_table_are_the_variants_and_take_its_bytes_once(
    tmp_path,
    project,  # noqa: F811
):
    project.write("models/pair.py", MODEL)
    project.write("pair.yaml", RECIPE + QUICK)
    project.write(".gitignore", "/artifacts/\n/dist/\n__pycache__/\n")
    locked = project("lock", "pair.yaml")
    assert locked.code == 0, locked.out + locked.err
    out = project.folder / "artifacts/out"
    package = out / "pair@decoder/fp32-shared-weights"
    assert sorted(path.name for path in package.iterdir()) == [
        "README.md", "SHA256SUMS", "decoder.onnx", "decoder.onnx.data", "encoder.onnx",
        "manifest.json", "run.json",
    ]  # fmt: skip
    graphs = [package / f"{name}.onnx" for name in ("encoder", "decoder")]
    total = sum(path.stat().st_size for path in (*graphs, package / "decoder.onnx.data"))
    assert total <= 1.05 * TABLE_BYTES
    assert json.loads((package / "run.json").read_text())["passed"] is True

    ids = np.array([1, 511, 7])
    hidden = _first(package / "encoder.onnx", {"ids": ids})
    np.testing.assert_array_equal(
        hidden, _first(out / "pair@encoder/fp32/model.onnx", {"ids": ids})
    )
    feeds = {"ids": ids, "hidden": hidden}
    logits = _first(package / "decoder.onnx", feeds)
    head = onnx.load(package / "decoder.onnx", load_external_data=False).graph
    assert "Transpose" in {node.op_type for node in head.node}
    np.testing.assert_array_equal(logits, _first(out / "pair@decoder/fp32/model.onnx", feeds))

    reference = tmp_path / "reference"
    reference.mkdir()
    writer = ReferenceWriter(reference)
    writer.add(ReferencePoint("example", {"batch": 3}, feeds, {"out": logits}))
    writer.finish()
    sound = shutil.copytree(package, tmp_path / "sound", ignore=shutil.ignore_patterns("run.json"))
    assert run_of(sound, reference, tmp_path / "good").findings == ()
    weights = sound / "decoder.onnx.data"
    weights.write_bytes(bytes(np.frombuffer(weights.read_bytes(), np.uint8)[::-1]))
    with pytest.raises(StepError, match=r"decoder\.onnx\.data is another file than"):
        run_of(sound, reference, tmp_path / "damaged")
    (sound / "SHA256SUMS").unlink()
    write_sums(sound)
    assert run_of(sound, reference, tmp_path / "other").findings

    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "a commit"]):
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *identity, *words], cwd=project.folder, check=True)
    released = project("release", "pair", "--version", "1.0.0")
    assert released.code == 0, released.out + released.err
    place = "packages/decoder/fp32-shared-weights"
    assert (project.folder / "dist/pair-1.0.0" / place / "encoder.onnx").is_file()
    checked = project("verify", "dist/pair-1.0.0", "--run")
    assert checked.code == 0, checked.out + checked.err


def _first(model, feeds):
    onnx.checker.check_model(str(model))
    return onnxruntime.InferenceSession(model).run(None, feeds)[0]
