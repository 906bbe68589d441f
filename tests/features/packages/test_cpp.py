"""`packages: {cpp: {}}`: what it says, what it refuses; compiled and run."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import onnxbuild
from onnxbuild.core.errors import StepError
from onnxbuild.core.step import HEADERS
from onnxbuild.features.packages.cpp import FEATURE, PackageCppParams, RunCppParams
from onnxbuild.host.host import HostFacts
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import BundleTarget, ManifestProvider
from onnxbuild.onnxkit.bundles.write import names_below
from onnxbuild.onnxkit.cpp.compiling import compile_test, find_tools
from onnxbuild.onnxkit.cpp.content import TYPES
from onnxbuild.onnxkit.packages.golden import read_plain_outputs
from onnxbuild.onnxkit.sessions.custom_operators import OperatorLibrary
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.resolver import resolve
from tests import tiny_transformers as tiny
from tests.cli.conftest import project  # noqa: F401 - a fixture
from tests.fakes.step_context import run_step
from tests.features.packages.test_every_format import RECIPE
from tests.native import NO_HEADERS, include_folder
from tests.native.packages import CPU_NAME, arrays, identities, write_bundle, write_reference
from tests.steps.decoders import load
from tests.written_recipes import faults, loader


def load_of(folder):
    return loader(folder, before=RECIPE)


def test_headers_of_the_recipe_are_those_of_the_run(tmp_path):
    (tmp_path / "third").mkdir()
    (tmp_path / "third/onnxruntime_cxx_api.h").write_text("")
    text = "packages: {variants: [int8], cpp: {headers: third}}\n"
    graph = resolve(load_of(tmp_path)(text).recipes, HostFacts("x86_64", frozenset({"avx2"})))
    ran = graph.steps["demo:int8-cpp/run"]
    assert ran.params.headers.files == ("third/onnxruntime_cxx_api.h",)


def test_headers_that_can_not_be_found_are_refused_when_the_recipe_is_read(tmp_path):
    (said, where, mend), *more = faults(load_of(tmp_path), "packages: {cpp: {header: x}}\n")
    assert [each for each, _, _ in more] == [
        "'x' in packages.cpp.headers matches no file below '.'"
    ]
    assert "did you mean 'headers'?" in said
    assert "headers" in mend
    assert where.startswith("demo.yaml:7:")


@pytest.mark.slow
def test_headers_that_come_later_run_the_test_and_nothing_else(project):  # noqa: F811
    headers = include_folder()
    if headers is None:
        pytest.skip(NO_HEADERS)
    text = "packages: {cpp: {}, ort-mobile: {style: runtime}}\nbenchmark:"
    project.edit("tiny.yaml", "benchmark:", text)
    packages = ("--only", "fp32-cpp", "--only", "fp32-ort-mobile")
    none = {"ORT_INCLUDE_DIR": str(project.folder)}
    done = project("run", "tiny.yaml", *packages, env=none)
    assert done.code == 0, done.out + done.err
    assert "was not run: ONNX Runtime's C++ headers are not here" in done.out
    out = project.folder / "artifacts/out/tiny"
    first = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    report = out / "fp32-cpp/run.json"
    assert json.loads(report.read_text()).keys() == {"skipped"}

    done = project("run", "tiny.yaml", *packages, env={"ORT_INCLUDE_DIR": str(headers)})
    assert (done.code, done.ran) == (0, ["fp32-cpp/run"]), done.out + done.err
    assert json.loads(report.read_text())["passed"] is True
    changed = {p for p, content in first.items() if p.read_bytes() != content}
    assert changed == {report}
    done = project("run", "tiny.yaml", *packages, env={"ORT_INCLUDE_DIR": str(headers)})
    assert "up to date" in done.out

    mobile = out / "fp32-ort-mobile"
    assert json.loads((mobile / "run.json").read_text())["passed"] is True
    assert json.loads((mobile / "validation.json").read_text())["passed"] is True
    kotlin = (mobile / "android/TinyFp32.kt").read_text()
    assert 'addConfigEntry("session.enable_saved_runtime_optimizations", "1")' in kotlin
    assert [row["provider"] for row in json.loads((mobile / "coverage.json").read_text())] == [
        "NNAPI", "CoreML (ML Program)", "CoreML (Neural Network)", "XNNPACK",
    ]  # fmt: skip


TOLERANCES = VariantTolerances(atol=1e-3, rtol=1e-3, equal_min=1.0)
HALVES = {"float16": "float32"}
"""Of an fp16 variant: the original has fp32."""

CUDA = ManifestProvider("CUDAExecutionProvider", {"device_id": "0"}, "cuda")
XNNPACK = ManifestProvider("XnnpackExecutionProvider", {"intra_op_num_threads": "2"}, "xnnpack")
CPU = ManifestProvider(CPU_NAME, {}, "cpu")


def packaged(folder, dtypes=("float32",), **changes):
    """(outcome, the package) of a bundle."""
    bundle = write_bundle(folder / "bundle", dtypes, **changes)
    reference = write_reference(folder / "reference", dtypes, HALVES)
    inputs = {"bundle": bundle, "reference": reference}
    params = PackageCppParams(TOLERANCES)
    outcome, context = run_step(FEATURE.kind, params, folder / "step", inputs)
    return outcome, context.output("bundle")


def contents(folder):
    return {name: (folder / name).read_bytes() for name in names_below(folder)}


def test_the_same_bundle_gives_the_same_bytes_and_names_no_path(tmp_path):
    outcome, package = packaged(tmp_path / "one", sorted(TYPES))
    assert contents(package) == contents(packaged(tmp_path / "two", sorted(TYPES))[1])
    assert outcome.metrics["golden_points"] == 2
    texts = b"".join(c for n, c in contents(package).items() if not n.startswith("golden/0"))
    assert str(tmp_path).encode() not in texts
    assert {"model/model.onnx", "model/model.onnx.data", "model/manifest.json"} <= set(
        outcome.metrics["files"]
    )


def test_members_and_settings_are_the_manifest_s(tmp_path):
    config = {"session.disable_prepacking": "1"}
    session = SessionSettings("basic", "parallel", 2, 3, "stop", cpu_arena=False, config=config)
    session = SessionSettings(
        **{
            **{f: getattr(session, f) for f in SessionSettings.__slots__},
            "free_dimensions": {"batch": 4},
        }
    )
    targets = {
        "cuda": BundleTarget((CUDA, CPU), session),
        "cpu": BundleTarget((CPU,), SessionSettings()),
    }
    _, package = packaged(
        tmp_path,
        ["float16", "bool"],
        targets=targets,
        providers=(CUDA, XNNPACK, CPU),
        sums_may_saturate=True,
    )
    header = (package / "include/all_types_fp32/model.h").read_text()
    assert "namespace all_types_fp32 {" in header
    assert '  /// "in.float16": float16 [batch, 3]\n  Tensor<Ort::Float16_t> in_float16;' in header
    assert "  Tensor<bool> class_bool;" in header
    written = (
        '{ORT_ENABLE_BASIC, ORT_PARALLEL, 2, 3, true, false, false, {{"batch", 4}}, '
        '{{"session.force_spinning_stop", "1"}, {"session.disable_prepacking", "1"}}}'
    )
    assert f'{{"cuda",\n       {written}}},' in header
    assert '{"CUDAExecutionProvider", "cuda", {{"device_id", "0"}}},' in header
    assert "api.CreateCUDAProviderOptions(&given)" in header
    assert 'options.AppendExecutionProvider("XNNPACK", provider.options);' in header
    assert 'config.emplace("session.x64quantprecision", "1")' in header
    readme = (package / "README.md").read_text()
    assert "| input | `in.float16` | float16 | `[batch, 3]` |" in readme
    assert "| `in.float16` | `inputs.in_float16` |" in readme
    assert "| `batch` | 0 to 8 |" in readme


def test_libraries_of_operators_come_along_and_are_registered_by_platform(tmp_path):
    bundle = write_bundle(tmp_path / "bundle", ["float32"])
    file = "operators/linux-x86_64/libfancy.so"
    (bundle / file).parent.mkdir(parents=True)
    (bundle / file).write_bytes(b"\x7fELF")
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["files"][file] = {"sha256": "0" * 64, "size_bytes": 4}
    library = OperatorLibrary(file, ("linux-x86_64",))
    manifest["operators"] = [
        {"file": library.file, "platforms": [*library.platforms], "registers": True}
    ]
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    inputs = {"bundle": bundle, "reference": write_reference(tmp_path / "reference", ["float32"])}
    params = PackageCppParams(TOLERANCES)
    _, context = run_step(FEATURE.kind, params, tmp_path / "step", inputs)
    package = context.output("bundle")
    assert (package / "model" / file).read_bytes() == b"\x7fELF"
    header = (package / "include/all_types_fp32/model.h").read_text()
    assert f'options.RegisterCustomOpsLibrary((folder / "{file}").c_str());' in header
    assert "detail::register_operators(options, file.parent_path());" in header


def run(folder, package, headers, **changes):
    """(outcome, context) of running a package whose reference is next to it."""
    params = RunCppParams(
        **{
            "subject": "the C++ package",
            "recipe": "all types",
            "variant": "fp32",
            "tolerances": TOLERANCES,
            **changes,
        }
    )
    inputs = {"package": package, "reference": folder / "reference"}
    places = {} if headers is None else {HEADERS: headers}
    return run_step(FEATURE.run, params, folder / "run", inputs, places=places)


def test_without_headers_it_is_skipped_with_what_to_do(tmp_path):
    _, package = packaged(tmp_path)
    outcome, context = run(tmp_path, package, None)
    assert "skipped" in outcome.metrics
    assert outcome.findings == ()
    assert "export ORT_INCLUDE_DIR" in outcome.notes[0]
    assert json.loads((context.output("report") / "report.json").read_text()).keys() == {"skipped"}


def test_a_damaged_or_foreign_package_is_refused_before_anything_is_compiled(tmp_path):
    _, package = packaged(tmp_path)
    with pytest.raises(StepError, match="a package of all types:fp32, not of all types:int8"):
        run(tmp_path, package, None, variant="int8")
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    (package / "main.cpp").write_text("int main() {}")
    with pytest.raises(StepError, match=r"main\.cpp is another file than"):
        run(tmp_path, package, None)


def needed_headers() -> Path:
    """The folder of ONNX Runtime's headers; without them or a compiler the test is skipped."""
    headers = include_folder()
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        pytest.skip("needs a C++ compiler")
    if headers is None:
        pytest.skip(NO_HEADERS)
    return headers


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """(folder, package, outcome, program) of a package with all types, compiled by CMake where it is there."""
    headers = needed_headers()
    folder = tmp_path_factory.mktemp("cpp")
    _, package = packaged(folder, sorted(TYPES))
    outcome, context = run(folder, package, headers)
    return folder, package, outcome, context.scratch / "build/all_types_fp32_golden_test"


@pytest.mark.slow
def test_all_types_go_in_and_out_and_are_judged(compiled):
    folder, _, outcome, _ = compiled
    assert outcome.findings == ()
    assert (outcome.metrics["points"], outcome.metrics["points_passed"]) == (2, 2)
    report = json.loads((folder / "run/out/report/report.json").read_text())
    by = "CMake" if shutil.which("cmake") else "the compiler alone"
    assert report["ran"] == f"all_types_fp32_golden_test, compiled with {by}"
    found = read_plain_outputs(folder / "run/scratch/outputs")
    for name, array in arrays(sorted(TYPES), 2).items():
        assert found["example"][f"class-{name}"].tolist() == array.tolist()
        assert found["fewest"][f"class-{name}"].shape == (0, 3)
    assert found["example"]["class-float16"].dtype == "float16"


@pytest.mark.slow
def test_the_program_says_what_is_wrong_and_ends_with_its_code(compiled, tmp_path):
    _, package, _, program = compiled

    def ran(*arguments):
        done = subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=300, check=False
        )
        return done.returncode, done.stdout.splitlines(), done.stderr

    there = ("--package", package)
    assert ran(*there) == (0, [f"runs on {CPU_NAME}", "example: ok", "fewest: ok"], "")
    assert ran("cpu", *there)[0] == 0
    assert ran("cuda", *there)[::2] == (3, "there is no target 'cuda'\n")
    assert ran("--nothing", *there)[::2] == (1, "there is no option --nothing\n")
    identities(sorted(TYPES), tmp_path / "other", scale=1.5)
    code, lines, _ = ran(*there, "--model", tmp_path / "other/model.onnx")
    assert code == 1
    said = r"example: class-float32: 2 of 3 elements are too far off, by up to 1"
    assert re.fullmatch(said, lines[1])  # of the second row: the first is on a threshold
    broken = shutil.copytree(package, tmp_path / "broken")
    (broken / "golden/00/output-0.bin").write_bytes(b"")
    code, _, error = ran("--package", broken)
    assert (code, "00/output-0.bin is missing, or has another size" in error) == (1, True)


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no CMake")
def test_cmake_refuses_a_folder_without_headers_and_a_library_without_its_names(tmp_path):
    """A wheel has the library under its full version alone: linked so, a program does not start."""
    _, package = packaged(tmp_path)
    capi, headers = tmp_path / "capi", tmp_path / "include"
    capi.mkdir()
    headers.mkdir()
    wheel = capi / "libonnxruntime.so.1.31.1"
    wheel.touch()
    _, printed = configured(package, headers, wheel)
    assert "no onnxruntime_cxx_api.h in ORT_INCLUDE_DIR" in printed
    (headers / "onnxruntime_cxx_api.h").touch()
    code, printed = configured(package, headers, wheel)
    assert code != 0
    (command,) = re.findall("^ *(mkdir ort && .*)$", printed, re.MULTILINE)
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    assert (tmp_path / "ort/libonnxruntime.so").resolve() == wheel.resolve()
    assert configured(package, headers, tmp_path / "ort/libonnxruntime.so")[0] == 0
    assert configured(package, headers, tmp_path / "ort/libonnxruntime.so.1.31.1")[0] == 0


def configured(package, headers, library):
    """(exit code, what CMake printed) of configuring a package."""
    given = (f"-DORT_INCLUDE_DIR={headers}", f"-DORT_LIBRARY={library}")
    command = ["cmake", "-S", package, "-B", package.parent / "build", *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    """(folder, its package, report of the build's run, headers) of a decoder with a cache."""
    headers = needed_headers()
    folder = tmp_path_factory.mktemp("decoder")
    tiny.saved(folder / "weights", lambda: load("qwen3"))
    (folder / "pyproject.toml").write_text("")
    (folder / "headers").symlink_to(headers)
    (folder / "demo.yaml").write_text(
        "version: 1\nname: demo\nmodel: {transformers: weights}\nexport: {exporter: torchscript}\n"
        "dynamic_axes: {sequence: {max: 12}, past: {max: 60}}\n"
        "generate: {prompts: dummy}\n"
        "packages: {cpp: {headers: headers}}\n"
    )
    result = onnxbuild.build(onnxbuild.Request((folder / "demo.yaml",)))
    assert result.exit_code == 0, result.report.failures
    return folder / "artifacts/out/demo", headers


@pytest.mark.slow
def test_a_decoder_goes_on_with_ids_as_its_run_py_does(decoder, tmp_path):
    out, headers = decoder
    assert json.loads((out / "fp32-cpp/run.json").read_text())["passed"] is True
    package = shutil.copytree(out / "fp32-cpp", tmp_path / "package")
    points = package / "golden_points.h"
    points.chmod(0o644)
    text = points.read_text()
    (tokens, *others) = re.findall(r"\{\{[\d, ]+\},\n +\{([\d, ]+)\}\},", text)
    assert len(others) == 7
    first, rest = tokens.split(", ", 1)
    points.write_text(text.replace(tokens, f"{int(first) + 100}, {rest}"))
    program = compile_test(package, "demo_fp32_golden_test", find_tools(headers), tmp_path)

    def ran(*arguments):
        command = [program, "--package", package, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    judged = ran()
    said = f"text 0: token 0 is {first} instead of {int(first) + 100}"
    assert (judged.returncode, judged.stdout.splitlines()[-1]) == (1, said)
    for ids in ("5", " ".join(str(7 * n % 61) for n in range(40))):
        asked = [sys.executable, out / "fp32/run.py", "--ids", ids, "--tokens", "30"]
        expected = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        assert ran("--ids", ids, "--tokens", "30").stdout.split() == expected.split()
    refused = ran("--ids", " ".join(["5"] * 70))
    assert refused.returncode == 1
    assert refused.stderr == "the prompt has 70 tokens; the model takes 1 to 61\n"
