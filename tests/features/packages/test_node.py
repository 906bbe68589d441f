"""`packages: {node: {}}`: in recipes, and what npm and Node make of the package."""

import json
import shutil
import subprocess
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxbuild.adapters.locate import cache_root
from onnxbuild.core.environment import Environment
from onnxbuild.core.errors import StepError
from onnxbuild.features.packages.node import FEATURE, PackageNodeParams, RunNodeParams
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import BundleTarget, ManifestProvider
from onnxbuild.onnxkit.bundles.write import write_sums
from onnxbuild.onnxkit.node.content import NodeNames
from onnxbuild.onnxkit.packages.golden import read_plain_outputs
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from tests.cli.conftest import Project, make_project
from tests.fakes.step_context import run_step
from tests.features.packages.web_packages import reference_of
from tests.native.packages import write_bundle, write_reference
from tests.servers import missing

NPM = shutil.which("npm")
TYPESCRIPT = (
    Path(__file__).resolve().parents[3] / ".servers/npm/node_modules/typescript/lib/tsc.js"
)
DTYPES = {
    "half": TensorProto.FLOAT16,
    "double": TensorProto.DOUBLE,
    "flag": TensorProto.BOOL,
    "int8": TensorProto.INT8,
    "int64": TensorProto.INT64,
    "uint8": TensorProto.UINT8,
    "text": TensorProto.STRING,
}
USE = """\
import { load } from "@me/tiny-fp32";
const model = await load();
const { logits } = await model.run({ input: { data: new Float32Array(12).fill(1), shape: [3, 4] } });
console.log(model.provider, logits.dtype, logits.shape.join());
await model.run({ input: new Float32Array(36) }).catch((error) => console.log(error.name, error.input));
await load({ target: "cuda" }).catch((error) => console.log(error.name, error.message));
await model.release();
"""
TYPED = """\
import { load, InputError, type Inputs, type Outputs } from "@me/tiny-fp32";
const model = await load({ target: "cpu", session: { intraOpNumThreads: 1 } });
const inputs: Inputs = { input: { data: new Float32Array(12), shape: [3, 4] } };
const outputs: Outputs = await model.run(inputs);
const logits: Float32Array = outputs.logits.data;
// @ts-expect-error: there is no such input
await model.run({ inputs: new Float32Array(12) });
// @ts-expect-error: it takes another array
await model.run({ input: new BigInt64Array(12) });
// @ts-expect-error: there is no such target
await load({ target: "cuda" });
// @ts-expect-error: providers are the target's
await load({ session: { executionProviders: ["cuda"] } });
export { InputError, logits };
"""


def test_where_it_can_not_be_run_it_is_skipped_with_a_note(tmp_path):
    there = {}
    why = "there is no Node here: `apt-get install nodejs npm`"
    package = tmp_path / "package"
    package.mkdir()
    write_sums(package)
    params = RunNodeParams("the package", VariantTolerances(), Environment(npm="list", **there))
    outcome, context = run_step(FEATURE.run, params, tmp_path, {"package": package})
    assert outcome.notes == (f"the package was not run: {why}",)
    assert outcome.findings == ()
    assert json.loads((context.output("report") / "report.json").read_text()) == {"skipped": why}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Project:
    """Two recipes with a package each: a small network, and a model with an input of each type."""
    if NPM is None:
        missing("npm")
    project = make_project(tmp_path_factory.mktemp("node") / "project")
    options = "packages: {node: {name: '@me/tiny-{variant}', version: 1.2.0}}\n"
    project.edit("tiny.yaml", "benchmark:", f"{options}benchmark:")
    _write_types(project.folder / "types.onnx")
    project.write(
        "types.yaml",
        "version: 1\nname: types\nmodel: {onnx: types.onnx}\n"
        "quantization: {fp32: none}\npackages: {node: {}}\n",
    )
    done = project("run", "tiny.yaml", "types.yaml", "--only", "fp32-node")
    assert done.code == 0, done.out + done.err
    if "npm can't install" in done.out:
        pytest.skip("npm can't reach its registry")
    return project


def _write_types(path):
    """A model that gives each of its inputs back."""
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name in DTYPES]
    sides = [
        [helper.make_tensor_value_info(f"{n}{end}", t, ["batch", 3]) for n, t in DTYPES.items()]
        for end in ("", "_out")
    ]
    graph = helper.make_graph(nodes, "types", *sides)
    opset = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)


def _out(project, recipe):
    return project.folder / "artifacts/out" / recipe / "fp32-node"


@pytest.fixture(scope="module")
def runtime(built) -> Environment:
    cache = Path(next(iter(built.cache.values()), cache_root()))
    found, *_ = (
        each.parent for each in cache.glob("environments/*/node_modules/onnxruntime-node")
    )
    return Environment(npm="list", interpreter=shutil.which("node"), folder=str(found.parent))


@pytest.mark.slow
def test_what_node_computes_is_what_the_reference_has_in_every_type(built):
    for recipe in ("tiny", "types"):
        report = json.loads((_out(built, recipe) / "run.json").read_text())
        assert report["passed"] is True
        assert report["metrics"]["points_passed"] == 4
    again = built("run", "tiny.yaml", "types.yaml", "--only", "fp32-node")
    assert (again.code, again.ran) == (0, [])


@pytest.mark.slow
def test_npm_packs_the_same_bytes_twice_and_installs_them_in_an_empty_folder(built, tmp_path):
    archives = []
    for number in ("one", "two"):
        target = tmp_path / number
        target.mkdir()
        _npm(_out(built, "tiny"), "pack", "--pack-destination", str(target))
        archives += [target / "me-tiny-fp32-1.2.0.tgz"]
    assert archives[0].read_bytes() == archives[1].read_bytes()
    home = tmp_path / "empty"
    home.mkdir()
    _npm(home, "install", "--ignore-scripts", "--no-audit", "--no-fund", str(archives[0]))
    (home / "use.mjs").write_text(USE)
    assert _node(home, "use.mjs").stdout.splitlines() == [
        "cpu float32 3,2",
        "InputError input",
        "LoadError there is no target 'cuda'; there are cpu",
    ]
    package = home / "node_modules/@me/tiny-fp32"
    assert _node(package, "test.js").stdout.splitlines()[:2] == ["runs on cpu", "example: ok"]
    assert [_node(package, "test.js", each).returncode for each in ("cpu", "cuda", "--no")] == [
        0, 3, 2,
    ]  # fmt: skip
    _scale_weights(package / "model.onnx")
    forged = _node(package, "test.js", "--outputs", str(tmp_path / "outputs"))
    assert (forged.returncode, "elements are too far off" in forged.stdout) == (1, True)
    assert len(read_plain_outputs(tmp_path / "outputs")) == 4
    if not TYPESCRIPT.exists():
        missing("TypeScript")
    (home / "typed.mts").write_text(TYPED)
    options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022"]
    checked = _node(home, str(TYPESCRIPT), *options, "typed.mts")
    assert (checked.returncode, checked.stdout) == (0, "")


def _list_again(package):
    (package / "SHA256SUMS").unlink()
    write_sums(package)


def _fewer_points(package):
    points = json.loads((package / "golden/points.json").read_text())
    (package / "golden/points.json").write_text(json.dumps(points[:1]))
    _list_again(package)


def _test_that_always_skips(package):
    (package / "test.js").write_text("console.error('no provider'); process.exit(3)\n")
    _list_again(package)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (None, ""),
        (_fewer_points, "it gives nothing at "),
        (
            _test_that_always_skips,
            "ends with 3, as if no provider of the package were here; the CPU is",
        ),
        (lambda package: (package / "judge.js").unlink(), "damaged: judge.js is missing"),
        (lambda package: (package / "SHA256SUMS").unlink(), "SHA256SUMS can't be read"),
    ],
)
def test_a_forged_truncated_or_swapped_package_is_refused(built, runtime, tmp_path, change, what):
    package = tmp_path / "package"
    shutil.copytree(_out(built, "tiny"), package, ignore=shutil.ignore_patterns("run.json"))
    reference = reference_of(package, tmp_path / "reference")
    if change is not None:
        change(package)
    params = RunNodeParams("the package", VariantTolerances(atol=1e-5, rtol=1e-4), runtime)
    try:
        outcome, _ = run_step(FEATURE.run, params, tmp_path / "step", {"package": package, "reference": reference})  # fmt: skip
        said = [each.what for each in outcome.findings] + list(outcome.notes)
    except StepError as error:
        said = [error.what]
    assert any(what in each for each in said) if what else said == []


def _scale_weights(path):
    model = onnx.load(path)
    for each in model.graph.initializer:
        if each.data_type == TensorProto.FLOAT:
            weights = numpy_helper.to_array(each)
            each.CopyFrom(numpy_helper.from_array(weights * 1.5, each.name))
    path.write_bytes(model.SerializeToString())


def _npm(folder, *arguments):
    done = subprocess.run(
        [NPM, "--silent", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _node(folder, *arguments):
    return subprocess.run(
        ["node", *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


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
