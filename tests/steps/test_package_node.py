"""The Node package: which providers a session is opened with, by a runtime that knows which of them load."""

import json
import shutil
import subprocess

import pytest

from onnxbuild.features.packages.node import FEATURE, PackageNodeParams
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import BundleTarget, ManifestProvider
from onnxbuild.onnxkit.node.content import NodeNames
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from tests.fakes.step_context import run_step
from tests.native.packages import write_bundle, write_reference

RUNTIME = """
const loads = new Set(process.argv[2].split(","));
const listSupportedBackends = () => ["cpu", "cuda", "tensorrt"].map((name) => ({ name }));
const create = async (_, { executionProviders }) => {
  const names = executionProviders.map((each) => each.name);
  const lacking = names.find((name) => !loads.has(name));
  if (lacking) throw new Error(`no library for ${lacking}`);
  console.log(names.join());
};
module.exports = { env: { versions: { node: "1" } }, listSupportedBackends, InferenceSession: { create } };
"""
OPEN = """
import { load } from "./index.js";
await load({ target: process.argv[3] }).then(({ provider }) => console.log(provider), (error) => console.log(error.message));
"""
FULL_NAMES = {"cpu": "CPU", "cuda": "CUDA", "tensorrt": "Tensorrt"}


def packaged(folder, *names):
    """A package whose variant has these providers, each a target, with a runtime next to it."""
    chain = [ManifestProvider(f"{FULL_NAMES[n]}ExecutionProvider", {}, n) for n in names]
    targets = {each.target: BundleTarget((each,), SessionSettings()) for each in chain}
    bundle = write_bundle(folder / "bundle", ["float32"], targets=targets, providers=tuple(chain))
    reference = write_reference(folder / "reference", ["float32"])
    params = PackageNodeParams(NodeNames("demo", "1.0.0", "demo", "1.30.0"), VariantTolerances())
    inputs = {"bundle": bundle, "reference": reference}
    _, context = run_step(FEATURE.kind, params, folder / "step", inputs)
    package = shutil.copytree(context.output("bundle"), folder / "package")
    runtime = package / "node_modules/onnxruntime-node"
    runtime.mkdir(parents=True)
    (runtime / "package.json").write_text(json.dumps({"name": "onnxruntime-node", "main": "r.js"}))
    (runtime / "r.js").write_text(RUNTIME)
    (package / "open.mjs").write_text(OPEN)
    return package


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize(
    ("chain", "loads", "target", "said"),
    [
        ("cpu cuda tensorrt", "cpu", "", ["cpu", "cpu"]),
        ("cuda tensorrt cpu", "cpu,cuda", "", ["cuda,cpu", "cuda"]),
        ("cpu cuda", "cpu", "cuda", ["onnxruntime-node 1 can't load CUDA (no library for cuda)"]),
    ],
)
def test_the_first_provider_that_loads_is_used_though_others_do_not_load(
    tmp_path, chain, loads, target, said
):
    package = packaged(tmp_path, *chain.split())
    words = [loads, *([target] if target else [])]
    done = subprocess.run(
        ["node", "open.mjs", *words], cwd=package, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == said, done.stderr
