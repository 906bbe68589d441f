"""Each step that makes a package: the same bytes in another process, folder, hash seed and order of files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onnxbuild.catalog import PACKAGE_FORMATS

ROOT = Path(__file__).parents[3]

SCRIPT = """
import hashlib, json
from dataclasses import replace
from pathlib import Path

from onnxbuild.catalog import PACKAGE_FORMATS
from onnxbuild.core.environment import Environment
from onnxbuild.host.host import HostFacts
from onnxbuild.onnxkit.loaders.script import load_script
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.onnxkit.web.content import BUILDS, NPM_LIST, PACKAGE
from onnxbuild.resolver import resolve
from tests.fakes.step_context import run_step
from tests.native.packages import write_bundle, write_ort_bundle, write_reference
from tests.written_recipes import loader

RECIPE = '''
version: 1
name: net
model: model.py:load
dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 10}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
quantization: {fp32: none}
'''
here = Path.cwd()
TYPES = ("float32", "int64", "bool", "uint8")
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
formats = {form: each for form, each in PACKAGE_FORMATS.items() if form != "genai"}  # a decoder's alone
recipes = loader(here, before=RECIPE)(f"packages: {{{', '.join(f'{each}: {{}}' for each in formats)}}}\\n")
graph = resolve(recipes.recipes, HostFacts("x86_64", frozenset()))
listed = []
for form, each in formats.items():
    given = graph.steps[f"net:fp32-{form}/{each.step}"].params
    if form == "web":
        given = replace(given, environment=Environment(npm=NPM_LIST, folder=str(here)))
    taken = {"bundle": bundle, "reference": reference, "model": bundle}
    if form == "ort-mobile":
        taken |= {"bundle": ort, "model": here / "scratch/onnx"}
    kept = {name.rstrip("?") for name in each.kind.inputs if not name.endswith("?")}
    _, context = run_step(
        each.kind, given, here / form, {name: path for name, path in taken.items() if name in kept}
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
    assert {line.partition(" ")[0] for line in said[0]} == set(PACKAGE_FORMATS) - {"genai"}
    assert len(said[0]) > 60
    assert said[0] == said[1]
