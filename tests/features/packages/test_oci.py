"""`packages: {oci: {}}`: what `push` pushes, as a folder."""

import json
import shutil
import subprocess

import numpy as np
import onnxruntime
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.features.packages.oci import FEATURE
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.write import write_sums
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.packages.package_run import RunParams
from tests.cli.conftest import project  # noqa: F401 - a fixture
from tests.fakes.step_context import run_step


@pytest.mark.slow
def test_it_is_what_push_pushes_and_is_pulled_run_and_judged(tmp_path, project):  # noqa: F811
    project.edit("tiny.yaml", "benchmark:", "packages: {oci: {}}\nbenchmark:")
    done = project.run("--only", "fp32-oci")
    assert done.code == 0, done.out + done.err
    out = project.folder / "artifacts/out/tiny/fp32-oci"
    assert json.loads((out / "run.json").read_text())["passed"] is True
    pushed = project("push", "tiny:fp32", "oci:pushed:fp32")
    assert pushed.code == 0, pushed.out + pushed.err
    same = subprocess.run(
        ["diff", "-r", "-x", "SHA256SUMS", "-x", "run.json", out, project.folder / "pushed"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (same.returncode, same.stdout) == (0, "")
    layout = project("push", "tiny:fp32-oci", "oci:again:fp32")
    assert layout.code == 2
    assert "tiny:fp32-oci is an OCI layout" in layout.err
    assert "`onnxbuild push tiny:fp32 REGISTRY/REPOSITORY:TAG`" in layout.err
    assert not (project.folder / "again").exists()
    pulled = project("pull", f"oci:{out}:fp32", "-o", "pulled")
    assert pulled.code == 0, pulled.out + pulled.err
    model = project.folder / "artifacts/out/tiny/fp32/model.onnx"
    assert (project.folder / "pulled/model.onnx").read_bytes() == model.read_bytes()

    reference = reference_of(model, tmp_path / "reference")
    as_made = shutil.ignore_patterns("run.json")  # a report that is laid next to it
    sound = shutil.copytree(out, tmp_path / "sound", ignore=as_made)
    assert run_of(sound, reference, tmp_path / "good").findings == ()
    cut = shutil.copytree(out, tmp_path / "cut", ignore=as_made)
    (blob,) = (b for b in (cut / "blobs/sha256").iterdir() if b.read_bytes() == model.read_bytes())
    blob.write_bytes(blob.read_bytes()[:-1])
    with pytest.raises(StepError, match="another file than the one that SHA256SUMS names"):
        run_of(cut, reference, tmp_path / "bad")
    (cut / "SHA256SUMS").unlink()
    write_sums(cut)
    with pytest.raises(StepError, match="has other bytes than its name says"):
        run_of(cut, reference, tmp_path / "summed")


def reference_of(model, folder):
    """A reference with one point."""
    folder.mkdir()
    feeds = {"input": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)}
    (logits,) = onnxruntime.InferenceSession(model).run(["logits"], feeds)
    writer = ReferenceWriter(folder)
    writer.add(ReferencePoint("example", {"batch": 3}, feeds, {"logits": logits}))
    writer.finish()
    return folder


def run_of(package, reference, folder):
    """What the step says of a layout."""
    params = RunParams("it", VariantTolerances(atol=1e-5, rtol=1e-4))
    inputs = {"package": package, "reference": reference}
    return run_step(FEATURE.run, params, folder, inputs)[0]
