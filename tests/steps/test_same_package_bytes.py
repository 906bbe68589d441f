"""Each step that makes a package: the same bytes in another process, folder, hash seed and order of files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onnxbuild.catalog import PACKAGE_FORMATS

ROOT = Path(__file__).parents[2]

SCRIPT = """
import hashlib, json
from pathlib import Path

from onnxbuild.core.environment import Environment
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.loaders.script import load_script
from onnxbuild.onnxkit.node.content import NodeNames
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.onnxkit.triton.options import TritonOptions
from onnxbuild.onnxkit.web.runtime import BUILDS, NPM_LIST, PACKAGE
from onnxbuild.onnxkit.wheels.content import WheelNames
from onnxbuild.features.packages import cpp, mlflow, node, oci, ort_mobile, triton, web, wheel
from tests.fakes.step_context import run_step
from tests.native.packages import write_bundle, write_ort_bundle, write_reference

here = Path.cwd()
TYPES = ("float32", "int64", "bool", "uint8")
BOUNDS = VariantTolerances(atol=1e-3, rtol=1e-3, equal_min=1.0)
about = {"versions": {"onnx": "1.20.0", "onnxruntime": "1.23.0"}, "session": SessionSettings()}
bundle = write_bundle(here / "bundle", TYPES, **about)
ORDER
for name in order:
    (bundle / name).write_text(load_script("onnxruntime") if name == "load.py" else name)
reference = write_reference(here / "reference", TYPES)
ort = write_ort_bundle(here / "ort", here / "scratch", TYPES)
runtime = here / "node_modules" / PACKAGE / "dist"
runtime.mkdir(parents=True)
for name in BUILDS["wasm"].values():
    (runtime / name).write_text(name)
web_params = web.PackageWebParams(
    "net", "a model", ("wasm",), 4, True, None, None, BOUNDS,
    Environment(npm=NPM_LIST, folder=str(here)),
)
params = {
    "triton": (triton, triton.PackageTritonParams(TritonOptions(), "net", "cpu")),
    "mlflow": (mlflow, mlflow.PackageMlflowParams("3.11", "auto", (), (("recipe", "net"),))),
    "oci": (oci, oci.PackageOciParams("fp32")),
    "web": (web, web_params),
    "wheel": (
        wheel,
        wheel.PackageWheelParams(WheelNames("net", "net", "1.0", "a net"), "auto", BOUNDS),
    ),
    "node": (
        node, node.PackageNodeParams(NodeNames("net", "1.0.0", "a net", "1.30.0"), BOUNDS),
    ),
    "cpp": (cpp, cpp.PackageCppParams(BOUNDS)),
    "ort-mobile": (ort_mobile, ort_mobile.PackageOrtMobileParams(BOUNDS)),
}
listed = []
for form, (step, given) in params.items():
    taken = {"bundle": bundle, "reference": reference, "model": bundle}
    if form == "ort-mobile":
        taken |= {"bundle": ort, "model": here / "scratch/onnx"}
    kept = {name.rstrip("?") for name in step.FEATURE.kind.inputs if not name.endswith("?")}
    _, context = run_step(
        step.FEATURE.kind, given, here / form, {name: path for name, path in taken.items() if name in kept}
    )
    folder = context.output("bundle")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            listed.append(f"{form} {path.relative_to(folder)} {hashlib.sha256(path.read_bytes()).hexdigest()}")
Path("listed.txt").write_text("\\n".join(listed))
"""


@pytest.mark.slow
def test_packages_are_the_same_bytes_in_another_process_folder_hash_seed_and_order(tmp_path):
    said = []
    for seed, order in (("1", ["load.py", "other.txt"]), ("2", ["other.txt", "load.py"])):
        folder = tmp_path / f"with-seed-{seed}"
        folder.mkdir()
        script = SCRIPT.replace("ORDER", f"order = {order}")
        done = subprocess.run(
            [sys.executable, "-B", "-c", script],
            cwd=folder, capture_output=True, text=True, timeout=240, check=False,
            env={**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": seed, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        said.append((folder / "listed.txt").read_text().splitlines())
    assert {line.partition(" ")[0] for line in said[0]} == set(PACKAGE_FORMATS)
    assert len(said[0]) > 60
    assert said[0] == said[1]
