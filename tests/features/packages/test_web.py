import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from onnxbuild.core.environment import NODE, Environment
from onnxbuild.core.errors import StepError
from onnxbuild.features.packages.web import FEATURE, PackageWebParams, RunWebParams
from onnxbuild.host.host import HostFacts
from onnxbuild.onnxkit.web.content import MOST_BYTES, NPM_LIST
from onnxbuild.resolver import resolve
from tests.cli.conftest import make_project
from tests.fakes.step_context import run_step
from tests.features.packages import web_packages, web_visits
from tests.features.packages.web_packages import STRICT, TYPES, package
from tests.servers import missing
from tests.written_recipes import faults, loader

ROOT = Path(__file__).parents[3]
MODULES = ROOT / ".servers/npm"
RECIPE = """\
version: 1
name: demo
description: a model for a page
model: model.py:load
dummy_inputs: {image: {dtype: float32, shape: [batch, 1, 8, 8], low: 0, high: 1}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
quantization: {fp32: none, int8: dynamic}
"""
HOST = HostFacts("x86_64", frozenset({"avx2"}))


def test_options_are_those_of_the_steps(tmp_path):
    (tmp_path / "labels.txt").write_text("a\nb\n")
    load = loader(tmp_path, before=RECIPE)
    asked = "packages: {variants: [int8], web: {webgpu: true, labels: labels.txt, tolerances: {atol: 0.5}}}\n"
    graph = resolve(load(asked).recipes, HOST)
    made = graph.steps["demo:int8-web/package"].params
    assert (made.title, made.description) == ("demo", "a model for a page")
    assert (made.providers, made.values) == (("webgpu", "wasm"), (0, 1))
    assert made.labels.files == ("labels.txt",)
    assert (made.tolerances.atol, made.tolerances.cosine_min) == (0.5, 0.98)
    run = graph.steps["demo:int8-web/run"].params
    assert run.tolerances == made.tolerances
    assert run.environment == Environment(npm=NPM_LIST, needs=(NODE,))


@pytest.mark.parametrize(
    ("written", "what", "fix"),
    [
        ("packages: {web: {labels: none.txt}}\n", "none.txt", ""),
        ("packages: {web: {webgl: true}}\n", "did you mean 'webgpu'?", "webgpu"),
        (
            "processing: {postprocess: [{softmax: {}}]}\npackages: {web: {format: ort}}\n",
            "fp32-pipeline is one",
            "remove `format: ort`",
        ),
    ],
)
def test_what_no_browser_can_do_is_refused_when_the_recipe_is_read(tmp_path, written, what, fix):
    load = loader(tmp_path, before=RECIPE)
    said = faults(load, written)
    assert any(what in each[0] and fix in each[2] for each in said), said


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A project whose variant was packaged."""
    for name in ("npm", "node"):
        if shutil.which(name) is None:
            missing(name)
    project = make_project(tmp_path_factory.mktemp("web") / "project")
    project.edit("tiny.yaml", "benchmark:", "packages: {web: {}}\nbenchmark:")
    done = project.run("--only", "fp32-web")
    assert done.code == 0, done.out + done.err
    return project


@pytest.fixture(scope="module")
def environment(built):
    """Where onnxruntime-web is."""
    cache = built.cache.get("ONNXBUILD_CACHE") or __import__("os").environ["ONNXBUILD_CACHE"]
    return next(Path(cache).rglob("node_modules/onnxruntime-web")).parents[1]


def test_a_model_that_no_browser_can_hold_is_refused(tmp_path):
    """Its size is declared; no such file is written."""
    source = web_packages.bundle(tmp_path / "bundle", web_packages.picture_model())
    manifest = json.loads((source / "manifest.json").read_text())
    digest = {"sha256": "0" * 64, "size_bytes": MOST_BYTES}
    manifest["files"]["model.onnx.data"] = digest
    manifest["size_bytes"] += MOST_BYTES
    (source / "manifest.json").write_text(json.dumps(manifest))
    params = PackageWebParams(
        title="", description="", providers=("wasm",), threads=1, page=True, labels=None, values=None,
        tolerances=STRICT, environment=Environment(npm=NPM_LIST),
    )  # fmt: skip
    inputs = {"bundle": source, "reference": tmp_path}
    with pytest.raises(StepError) as caught:
        run_step(FEATURE.kind, params, tmp_path / "step", inputs)
    assert caught.value.what == "the model has 1.90 GB; a browser opens up to 1.9 GB"
    assert "mode: weight_only" in caught.value.fix


@pytest.mark.slow
def test_a_package_is_judged_is_the_same_twice_and_nothing_of_it_can_be_swapped(built, tmp_path):
    out = built.folder / "artifacts/out/tiny/fp32-web"
    report = json.loads((out / "run.json").read_text())
    assert (report["passed"], report["metrics"]["points_passed"]) == (True, 4)
    listed = subprocess.run(
        ["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=out, check=False, timeout=300
    )
    assert listed.returncode == 0
    assert (out / "model.onnx").read_bytes() == (out.parent / "fp32/model.onnx").read_bytes()
    own = subprocess.run(
        ["node", "test.mjs"], cwd=out, capture_output=True, text=True, check=False, timeout=300
    )
    assert (own.returncode, own.stdout.splitlines()) == (
        0, ["example: ok", "min: ok", "max-batch: ok", "between: ok"],
    )  # fmt: skip
    assert built.run("--only", "fp32-web").ran == []

    sums = (out / "SHA256SUMS").read_bytes()
    again = built("run", "tiny.yaml", "--only", "fp32-web", "--store", str(tmp_path / "store"))
    assert again.code == 0, again.out + again.err
    assert next((tmp_path / "store").rglob("fp32-web/SHA256SUMS")).read_bytes() == sums

    for change, what in (
        (lambda folder: (folder / "extra.js").write_text("x"), "SHA256SUMS does not name it"),
        (lambda folder: (folder / "page/page.js").write_text("x"), "is another file"),
        (lambda folder: (folder / "model.js").unlink(), "model.js is missing"),
        (lambda folder: (folder / "SHA256SUMS").unlink(), "SHA256SUMS can't be read"),
    ):
        with pytest.raises(StepError, match=what):
            judged(changed(out, tmp_path, change), out, tmp_path)
    with pytest.raises(StepError, match=r"'model.onnx' has \d+ bytes; it is \d+ in this package"):
        judged(changed(out, tmp_path, truncated, sums=True), out, tmp_path)
    with pytest.raises(StepError, match=r"'model\.onnx' is another file than the one in this"):
        judged(changed(out, tmp_path, flipped, sums=True), out, tmp_path)
    (finding, *_) = judged(changed(out, tmp_path, forged, sums=True), out, tmp_path).findings
    assert "differ by more than" in finding.what


def judged(folder, out, tmp_path):
    """What the step says of a package, by the reference of the build that made it."""
    points = tmp_path / "reference"
    if not points.exists():
        store = out.parents[2]
        names = json.loads((out / "golden/points.json").read_text())
        assert names
        web_packages.reference_of(out, points)
        assert store.is_dir()
    params = RunWebParams("the package", STRICT, node())
    return run_step(
        FEATURE.run, params, tmp_path / "step", {"package": folder, "reference": points}
    )[0]


def node():
    return Environment(npm=NPM_LIST, needs=(NODE,), interpreter=shutil.which("node"))


def changed(out, tmp_path, change, *, sums=False):
    """A copy of a package with something else in it; its SHA256SUMS written anew on request."""
    for each in ("changed", "step"):
        shutil.rmtree(tmp_path / each, ignore_errors=True)
    folder = shutil.copytree(out, tmp_path / "changed")
    (folder / "run.json").unlink()
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    change(folder)
    if sums:
        files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "SHA256SUMS")
        lines = [f"{digest(p)}  {p.relative_to(folder).as_posix()}\n" for p in files]
        (folder / "SHA256SUMS").write_text("".join(lines))
    return folder


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def truncated(folder):
    model = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(model[:-1])


def flipped(folder):
    model = bytearray((folder / "model.onnx").read_bytes())
    model[-200] ^= 1
    (folder / "model.onnx").write_bytes(model)


def forged(folder):
    """Another model, and model.js says that it is the right one."""
    import onnx
    from onnx import numpy_helper

    old = digest(folder / "model.onnx")
    model = onnx.load(folder / "model.onnx")
    for each in model.graph.initializer:
        each.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(each) * 1.5, each.name))
    size = (folder / "model.onnx").stat().st_size
    onnx.save(model, folder / "model.onnx")
    text = (folder / "model.js").read_text().replace(old, digest(folder / "model.onnx"))
    text = text.replace(str(size), str((folder / "model.onnx").stat().st_size))
    (folder / "model.js").write_text(text)


@pytest.mark.slow
def test_each_type_goes_in_and_comes_out_and_weights_may_have_a_file_of_their_own(
    environment, tmp_path
):
    given = {
        "ids": np.array([2**62 + 1, -3]),
        "half": np.array([0.1, 65504], np.float16),
        "flags": np.array([True, False]),
        "bytes": np.array([0, 255], np.uint8),
        "double": np.array([1e300, -0.0]),
        "text": np.array(["é\n", "中"]),
        "large": np.array([2**64 - 1, 0], np.uint64),
    }
    assert given.keys() == TYPES.keys()
    folder = package(tmp_path / "types", web_packages.typed_model(), [given], environment)
    params = RunWebParams("the package", STRICT, node())
    inputs = {"package": folder, "reference": tmp_path / "types/reference"}
    assert run_step(FEATURE.run, params, tmp_path / "run", inputs)[0].findings == ()

    images = [{"image": np.ones((2, 1, 8, 8), np.float32)}]
    external = package(
        tmp_path / "external", web_packages.picture_model(), images, environment, external=True
    )
    assert (external / "model.onnx.data").is_file()
    inputs = {"package": external, "reference": tmp_path / "external/reference"}
    assert run_step(FEATURE.run, params, tmp_path / "run2", inputs)[0].findings == ()
    if (MODULES / "node_modules/typescript").is_dir():
        check_types(folder, tmp_path / "typed")


def check_types(package_folder, folder):
    """model.d.ts says what the module takes, and TypeScript believes it."""
    folder.mkdir()
    for name in ("model.d.ts", "model.js"):
        shutil.copy(package_folder / name, folder)
    (folder / "good.ts").write_text(
        'import { load, type Inputs } from "./model.js";\n'
        "const inputs: Inputs = { ids: [1n, 2], half: new Float32Array(2), flags: [true, 0], bytes: [[1], [2]],\n"
        '  double: { data: new Float64Array(2), shape: [2] }, text: ["a"], large: new BigUint64Array(2) };\n'
        "const model = await load({ provider: 'wasm', threads: 2, onProgress: ({ loaded, total }) => loaded / total });\n"
        "const numbers: BigInt64Array = (await model.run(inputs)).ids_out.data;\n"
        "const text: string[] = (await model.run(inputs)).text_out.data;\n"
        "export { numbers, text };\n"
    )
    (folder / "bad.ts").write_text(
        'import { load } from "./model.js";\n'
        "(await load()).run({ ids: new Float32Array(2) });\n"
        "(await load({ provider: 'webgpu' }));\n"
    )
    compiler = ["node", MODULES / "node_modules/typescript/lib/tsc.js", "--noEmit", "--strict"]
    options = ["--target", "esnext", "--module", "nodenext", "--lib", "esnext,dom"]
    (folder / "package.json").write_text('{"type": "module"}')
    good, bad = (
        subprocess.run(
            [*compiler, *options, name],
            cwd=folder, capture_output=True, text=True, check=False, timeout=300,
        )
        for name in ("good.ts", "bad.ts")
    )  # fmt: skip
    assert good.returncode == 0, good.stdout
    assert [line.partition(",")[0] for line in bad.stdout.splitlines() if line.startswith("bad")] == [
        "bad.ts(2", "bad.ts(3",
    ]  # fmt: skip


@pytest.mark.slow
def test_operators_that_the_runtime_lacks_are_all_named(environment, tmp_path):
    feeds = [{"x": np.array([1, 0], np.int8)}]
    folder = package(tmp_path / "lacking", web_packages.lacking_model(), feeds, environment)
    params = RunWebParams("the web package of variant 'fp32'", STRICT, node())
    inputs = {"package": folder, "reference": tmp_path / "lacking/reference"}
    with pytest.raises(StepError) as caught:
        run_step(FEATURE.run, params, tmp_path / "run", inputs)
    assert caught.value.what.startswith(
        "onnxruntime-web 1.30.0 lacks operators of the web package of variant 'fp32': ai.onnx::Where (bool, int8, int8)"
    )
    assert "variants" in caught.value.fix


@pytest.mark.slow
def test_without_node_it_is_skipped_and_says_what_to_install(environment, tmp_path):
    feeds = [{"x": np.array([1, 0], np.int8)}]
    folder = package(tmp_path / "any", web_packages.lacking_model(), feeds, environment)
    params = RunWebParams("the package", STRICT, Environment(npm=NPM_LIST, needs=(NODE,)))
    inputs = {"package": folder, "reference": tmp_path / "any/reference"}
    outcome, _ = run_step(FEATURE.run, params, tmp_path / "run", inputs)
    assert "apt-get install nodejs npm" in outcome.notes[0]


@pytest.fixture(scope="module")
def visited(environment, tmp_path_factory):
    """What Chromium shows of pages for pictures, texts and numbers, on several servers."""
    chromium = web_visits.chromium()
    folder = tmp_path_factory.mktemp("pages")
    values = np.random.default_rng(1).uniform(0, 1, (1, 1, 8, 8)).astype(np.float32)
    digits = [str(number) for number in range(10)]
    pages = {
        "picture": package(
            folder / "picture", web_packages.picture_model(), [{"image": values}], environment,
            providers=("webgpu", "wasm"), labels=digits,
        ),
        "pair": package(
            folder / "pair", web_packages.picture_model(), [{"image": np.repeat(values, 2, 0)}],
            environment, labels=digits,
        ),
        "mixed": package(
            folder / "mixed", web_packages.picture_model(mixed=True), [{"image": values}], environment,
            providers=("webgpu", "wasm"),
        ),
        "text": package(
            folder / "text", web_packages.text_model(),
            [{"text": np.array([word])} for word in ("red", "green")], environment,
            providers=("webgpu", "wasm"), labels=web_packages.WORDS,
        ),
        "values": package(
            folder / "values", web_packages.typed_model(),
            [{"ids": np.array([7]), "half": np.array([1.5], np.float16), "flags": np.array([True]),
              "bytes": np.array([9], np.uint8), "double": np.array([2.5]), "text": np.array(["a b"]),
              "large": np.array([3], np.uint64)}],
            environment,
        ),
    }  # fmt: skip
    Image.fromarray(np.full((40, 60), 255, np.uint8)).save(folder / "white.png")
    servers = [web_visits.serve(pages[name] / "serve.py") for name in pages]
    plain = web_visits.serve("-m", "http.server", "--bind", "127.0.0.1", "0", cwd=pages["text"])
    picture, pair, mixed, text, numbers = (url for _, url in servers)
    typed = [
        {"tab": "#text"}, {"press": "Control+A"}, {"text": "green"}, {"press": "Control+Enter"}, {"wait": 500},
        {"tab": "button.main"}, {"press": "Enter"}, {"tab": ".chips button"}, {"press": "Space"}, {"wait": 500},
        {"tab": "#check"},
    ]  # fmt: skip
    try:
        return {
            **web_visits.visit(folder, chromium, [
                {"name": "picture", "url": picture, "picture": str(folder / "white.png"),
                 "keys": [{"tab": "#file"}, {"tab": "#scale"}, {"tab": ".thumbs button"}]},
                {"name": "no picture to show", "url": pair,
                 "keys": [{"tab": "#measure"}, {"press": "Enter"}, {"wait": 2000}]},
                {"name": "picture, dark, small", "url": picture, "scheme": "dark", "width": 390},
                {"name": "text", "url": text, "keys": typed},
                {"name": "text, dark, small", "url": text, "scheme": "dark", "width": 390},
                {"name": "values", "url": numbers, "keys": [{"tab": "#point"}, {"tab": "#value-0"}]},
                {"name": "values, dark, small", "url": numbers, "scheme": "dark", "width": 320},
                {"name": "plain", "url": plain[1]},
                {"name": "refused", "url": f"{numbers}?provider=webgpu"},
            ]),
            **web_visits.visit(folder, chromium, [
                {"name": "picture on webgpu", "url": picture}, {"name": "text on webgpu", "url": text},
                {"name": "mixed on webgpu", "url": mixed},
            ], "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"),
        }  # fmt: skip
    finally:
        web_visits.end(*servers, plain)


@pytest.mark.slow
def test_pages_load_compute_ask_nobody_else_and_are_accessible(visited):
    for name, seen in visited.items():
        assert seen["outside"] == [], name
        assert seen["axe"] == [], name
        assert seen["wide"] is False, name
        if name == "refused":
            assert seen["#problem"] == "provider is 'webgpu'; this package has wasm"
            continue
        assert seen["state"] == "ready", seen
        complaints = [each for each in seen["console"] if "No available adapters" not in each]
        assert complaints == [], name
        assert "inputs are within the tolerance" in seen["#checked"], name
        done, of = seen["#checked"].split(" inputs")[0].split(" of ")
        assert done == of, name
        for each in ("load", "first", "median"):
            assert seen[f"#time-{each}"].endswith("s"), (name, seen["#problem"])


@pytest.mark.slow
def test_what_runs_is_said_as_it_is(visited):
    threads = visited["values"]
    assert (threads["isolated"], "2 threads" in threads["#ran"] or "4 threads" in threads["#ran"]) == (True, True)  # fmt: skip
    assert visited["plain"]["isolated"] is False
    assert visited["plain"]["#ran"] == "WebAssembly, 1 thread"
    assert "Cross-Origin-Opener-Policy" in visited["plain"]["#notes"]
    assert visited["picture"]["#notes"].startswith("WebAssembly instead of WebGPU: ")
    assert visited["picture on webgpu"]["#ran"] == "WebGPU"
    assert visited["mixed on webgpu"]["#ran"] == "WebGPU and WebAssembly"
    assert "WebGPU has no kernels for them" in visited["mixed on webgpu"]["#notes"]
    assert visited["text on webgpu"]["#ran"].startswith("WebAssembly, ")
    assert "No Op registered for LabelEncoder" in visited["text on webgpu"]["#notes"]


@pytest.mark.slow
def test_pages_are_used_by_keyboard_and_show_pictures_texts_and_names(visited):
    text, picture = visited["text"], visited["picture"]
    assert [each[0] for each in text["keys"]] == ["text", "Run", "red", "check"]
    assert all(style == "solid" for seen in visited.values() for _, style in seen["keys"])
    assert text[".headline"] == "red"
    assert text["#said"] == "red, 90.0 %"
    assert text["bars"][0] == "red"
    assert picture[".seen span"].startswith("What the model sees: 8")
    assert picture[".headline"] in picture["bars"][0]
