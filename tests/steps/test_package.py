import hashlib
import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from onnxbuild.core.params import to_json
from onnxbuild.core.recipe import Axis
from onnxbuild.core.target import CPU_TARGET, Link, Target
from onnxbuild.onnxkit.bundles.manifest import read_manifest
from onnxbuild.onnxkit.loaders import onnx_bundle
from onnxbuild.onnxkit.sessions.settings import SessionSettings, write_settings
from onnxbuild.steps import quantize_dynamic
from onnxbuild.steps.package import KIND, PackageParams
from tests.fakes.step_context import run_step
from tests.native import NO_HEADERS, include_folder
from tests.onnxkit.models import model, value, weight
from tests.steps.graphs import digits, save

VALIDATION = {
    "placement": {"nodes": {"CPUExecutionProvider": 9}, "coverage": 1.0},
    "passed": True, "tolerances": {"atol": 1e-5}, "metrics": {"max_abs": 1e-6}, "points": [1, 2],
}  # fmt: skip
SKIPPED = {"provider": "cuda", "skipped": "does not load"}
EVALUATION = {
    "metric": "digits.py:accuracy", "score": 0.99, "baseline_score": 0.99, "drop": 0.0,
    "samples": 450, "passed": True, "batches": 9,
}  # fmt: skip


WRITTEN = SessionSettings(intra_op_threads=4)
TUNED = SessionSettings(intra_op_threads=2, cpu_arena=False, spinning="stop")


def packaged(folder, *, external="auto", evaluated=True, more=None, model=None):
    def report(name, value):
        (folder / name).mkdir(parents=True)
        (folder / name / "report.json").write_text(json.dumps(value))
        return folder / name

    inputs = {
        "model": model or digits(folder / "model", external=external),
        "check": report("check", {}),
        "export-check": report("export-check", {}),
        "validation/cuda": report("validation-cuda", SKIPPED),
        "validation/cpu": report("validation", VALIDATION),
        "session/cpu": folder / "tuned",
    }
    inputs["session/cpu"].mkdir(parents=True)
    write_settings(inputs["session/cpu"], TUNED)
    for name, content in (more or {}).items():
        (inputs["model"] / name).parent.mkdir(parents=True, exist_ok=True)
        (inputs["model"] / name).write_bytes(content)
    if evaluated:
        inputs["evaluation/cpu"] = report("evaluation", EVALUATION)
    params = PackageParams(
        onnxbuild="1.2.3",
        recipe="digits",
        recipe_sha256="ab" * 32,
        variant="fp32",
        precision="fp32",
        axes=(Axis("batch", 1, 64, 2),),
        targets=(Target("cuda", (Link("cuda", {"device_id": "0"}),)), CPU_TARGET),
        session=WRITTEN,
    )
    outcome, context = run_step(KIND, params, folder / "step", inputs)
    return outcome, context.output("bundle")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return packaged(tmp_path_factory.mktemp("package"))[1]


def test_a_bundle_holds_the_model_and_all_that_is_known_of_it(bundle):
    assert sorted(path.name for path in bundle.iterdir()) == [
        "SHA256SUMS", "cpp", "evaluation.json", "load.py", "manifest.json", "model.onnx",
        "validation.json",
    ]  # fmt: skip
    validations = json.loads((bundle / "validation.json").read_text())
    assert validations == {"cpu": VALIDATION, "cuda": SKIPPED}
    assert json.loads((bundle / "evaluation.json").read_text()) == {"cpu": EVALUATION}


def test_the_sums_cover_every_other_file_in_order(bundle):
    lines = (bundle / "SHA256SUMS").read_text().splitlines()
    names = [line.split("  ")[1] for line in lines]
    there = {p.relative_to(bundle).as_posix() for p in bundle.rglob("*") if p.is_file()}
    assert names == sorted(there - {"SHA256SUMS"})
    assert {"cpp/main.cpp", "cpp/CMakeLists.txt"} <= set(names)
    for line in lines:
        sha256, name = line.split("  ")
        assert hashlib.sha256((bundle / name).read_bytes()).hexdigest() == sha256


def test_the_manifest_says_what_a_server_must_know(bundle):
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["schema_version"] == 2
    assert (manifest["kind"], manifest["file"], manifest["made_for"]) == (
        "onnx",
        "model.onnx",
        None,
    )
    assert manifest["size_bytes"] == (bundle / "model.onnx").stat().st_size
    assert read_manifest(manifest).targets.keys() == {"cpu", "cuda"}
    assert (manifest["name"], manifest["variant"]) == ("digits", "fp32")
    assert manifest["inputs"] == [
        {"name": "image", "dtype": "float32", "shape": ["batch", 1, 8, 8]}
    ]
    assert manifest["dynamic_axes"] == {
        "batch": {"min": 1, "max": 64, "example": 2, "multiple_of": 1}
    }
    assert manifest["opsets"] == {"ai.onnx": 18}
    assert manifest["providers"] == [
        {"name": "CUDAExecutionProvider", "options": {"device_id": "0"}, "target": "cuda"},
        {"name": "CPUExecutionProvider", "options": {}, "target": "cpu"},
    ]
    sessions = {name: each.pop("session") for name, each in manifest["targets"].items()}
    assert sessions == {"cuda": to_json(WRITTEN), "cpu": to_json(TUNED)}
    assert manifest["session"] == sessions["cuda"]  # the first target's
    assert manifest["targets"] == {
        "cuda": {
            "chain": [{"name": "CUDAExecutionProvider", "options": {"device_id": "0"}}],
            "skipped": "does not load",
        },
        "cpu": {
            "chain": [{"name": "CPUExecutionProvider", "options": {}}],
            "placement": VALIDATION["placement"],
        },
    }
    assert set(manifest["validation"]) == {"cpu"}
    assert manifest["validation"]["cpu"]["tolerances"] == {"atol": 1e-5}
    assert manifest["evaluation"]["cpu"]["score"] == 0.99
    assert set(manifest["versions"]) == {"onnxbuild", "onnx", "onnxruntime"}
    listed = manifest["files"]["model.onnx"]
    content = (bundle / "model.onnx").read_bytes()
    assert listed == {
        "sha256": hashlib.sha256(content).hexdigest(), "size_bytes": len(content),
    }  # fmt: skip


def test_the_loader_stands_alone(bundle, tmp_path):
    done = subprocess.run(
        [sys.executable, "-I", "-B", str(bundle / "load.py")],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    assert "input  image float32 ['batch', 1, 8, 8]" in done.stdout
    assert "runs on C" in done.stdout  # CUDA or CPU, whichever is there
    assert "output logits float32 [2, 10]" in done.stdout


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
@pytest.mark.slow
def test_the_program_in_cpp_prints_what_onnx_runtime_gives(tmp_path):
    import onnxruntime

    if include_folder() is None:
        pytest.skip(NO_HEADERS)
    _, bundle = packaged(tmp_path)
    example = compiled_example(bundle, tmp_path)
    printed = subprocess.run(
        [example, bundle / "model.onnx"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert printed[0] == "logits [2, 10]"
    image = ((np.arange(128) % 7 - 3) / 4).astype(np.float32).reshape(2, 1, 8, 8)
    session = onnxruntime.InferenceSession(
        bundle / "model.onnx", providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, {"image": image})[0].ravel()[:8]
    np.testing.assert_allclose([float(n) for n in printed[1].split()], expected, rtol=1e-5)

    failed = subprocess.run([example, "nothing.onnx"], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr.startswith("nothing.onnx: ")


def compiled_example(bundle, folder):
    """The program in C++ of a bundle, compiled with the library of ONNX Runtime's wheel."""
    import onnxruntime

    (wheel,) = Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*")
    library = folder / "lib/libonnxruntime.so"
    library.parent.mkdir()
    for name in (library, library.with_name("libonnxruntime.so.1")):
        name.symlink_to(wheel)  # the names that the linker and the loader look for
    build = folder / "build"
    given = (f"-DORT_INCLUDE_DIR={include_folder()}", f"-DORT_LIBRARY={library}")
    subprocess.run(["cmake", "-S", bundle / "cpp", "-B", build, *given], check=True)
    subprocess.run(["cmake", "--build", build], check=True)
    return build / "example"


def test_a_users_config_joins_the_targets_and_wins(bundle, tmp_path):
    path = tmp_path / "bundle/manifest.json"
    shutil.copytree(bundle, path.parent)
    manifest = json.loads(path.read_text())
    own = {"session.use_env_allocators": "0", "session.disable_prepacking": "1"}
    manifest["targets"]["cpu"]["session"]["config"] = own
    path.write_text(json.dumps(manifest))
    reported = (
        "import sys; sys.path.insert(0, sys.argv[1]); from load import load\n"
        "prepacking, allocators = 'session.disable_prepacking', 'session.use_env_allocators'\n"
        "for config in ({}, {allocators: '1'}, {prepacking: '0', 'session.set_denormal_as_zero': '1'}):\n"
        "    found = load('cpu', {'config': config}).get_session_options()\n"
        "    keys = {prepacking: 0, allocators: 0, **config}\n"
        "    print(*(found.get_session_config_entry(key) for key in keys))\n"
        "try:\n"
        "    load('cpu', {'free_dimensions': {'batc': 1}})\n"
        "except Exception as error:\n"
        "    print(error)\n"
        "load('cpu', {'intra_op_thread': 1})\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", reported, str(path.parent)],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    axes = sorted(manifest["dynamic_axes"])
    refused = f"there is no dynamic axis 'batc'; there are {axes}"
    assert done.stdout.splitlines() == ["1 0", "1 1", "0 0 1", refused]
    assert "LoadError: there is no session setting 'intra_op_thread'; there are [" in done.stderr


def test_no_cpu_computes_other_values_with_the_loader(tmp_path):
    """Ones times ones: 255 x 127 twice, again and again. Only a CPU without VNNI can fail it."""
    made = model(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"], name="multiply")],
        [value("x", ["batch", 64])],
        [value("y", ["batch", 16])],
        [weight("w", np.ones((64, 16), np.float32))],
    )
    options = quantize_dynamic.DynamicOptions(reduce_range=False)
    _, context = run_step(
        quantize_dynamic.KIND,
        quantize_dynamic.DynamicParams(options),
        tmp_path / "quantize",
        {"model": save(made, tmp_path / "source")},
    )
    _, bundle = packaged(tmp_path / "package", model=context.output("model"))
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["sums_may_saturate"]
    reported = (
        "import sys; sys.path.insert(0, sys.argv[1]); from load import adds_in_16_bits, load\n"
        "import numpy as np\n"
        "print(load('cpu').run(None, {'x': np.ones((5, 64), np.float32)})[0].tolist())\n"
        "print(adds_in_16_bits())\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", reported, str(bundle)],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    found, saturates = done.stdout.splitlines()
    np.testing.assert_allclose(json.loads(found), np.full((5, 16), 64), rtol=0.005)
    assert ("neither VNNI nor AMX" in done.stderr) is (saturates == "True")


def test_a_model_whose_nodes_share_a_weight_is_refused_with_a_way_out(tmp_path):
    """ONNX Runtime 1.31 swaps a shared weight for an unsigned one twice, and fails."""
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
        onnx.helper.make_node("MatMul", ["h", "w"], ["y"], name="second"),
    ]
    shape = ["batch", 16]
    w = weight("w", np.ones((16, 16), np.float32))
    made = model(nodes, [value("x", shape)], [value("y", shape)], [w])
    _, context = run_step(
        quantize_dynamic.KIND,
        quantize_dynamic.DynamicParams(quantize_dynamic.DynamicOptions(reduce_range=False)),
        tmp_path / "quantize",
        {"model": save(made, tmp_path / "source")},
    )
    _, bundle = packaged(tmp_path / "package", model=context.output("model"))
    reported = (
        "import sys; sys.path.insert(0, sys.argv[1]); from load import load\n"
        "for given in '01':\n"
        "    load('cpu', {'config': {'session.x64quantprecision': given}})\n"
        "    print(given)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", reported, str(bundle)],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.stdout == "0\n"
    assert "two of its nodes share a weight. Build it with `reduce_range: pairs`" in done.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other CPUs have no such sums")
def test_the_loader_knows_such_a_cpu_by_its_flags(tmp_path):
    facts = tmp_path / "cpuinfo"
    facts.write_text("processor\t: 0\nflags\t\t: fpu avx2 sse4_2\n")
    assert onnx_bundle.adds_in_16_bits(str(facts)) is True
    assert onnx_bundle.adds_in_16_bits(str(tmp_path / "nothing")) is False


def test_external_data_is_part_of_the_bundle(tmp_path):
    outcome, bundle = packaged(tmp_path, external="always", evaluated=False)
    assert (bundle / "model.onnx.data").exists()
    assert "model.onnx.data  " not in (bundle / "SHA256SUMS").read_text()
    assert "  model.onnx.data\n" in (bundle / "SHA256SUMS").read_text()
    assert outcome.metrics["model_bytes"] == sum(
        path.stat().st_size for path in bundle.glob("model.onnx*")
    )
    assert not (bundle / "evaluation.json").exists()


def test_the_same_inputs_give_the_same_bytes_in_another_folder(bundle, tmp_path):
    _, again = packaged(tmp_path)
    for path in filter(Path.is_file, bundle.rglob("*")):
        name = path.relative_to(bundle)
        assert (again / name).read_bytes() == path.read_bytes(), name
