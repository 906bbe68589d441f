"""AOTInductor packages, and what is shipped with every program other than ONNX; compiled once."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from onnxbuild.steps import aotinductor, package
from tests.fakes.step_context import run_step
from tests.steps.programs import BATCH, ROOT, X, Y, judged, make


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    return make(folder, "TwoInputs", "torch-export", inputs=(X, Y), outputs=("sum",))[1]


@pytest.fixture(scope="module")
def scripted(tmp_path_factory):
    """A TorchScript bundle, and its program in C++, which is compiled next to all else.

    It returns a named tuple with a dict in it, of which some is taken, in another order.
    """
    folder = tmp_path_factory.mktemp("scripted")
    names = ("more.b", "sum")
    _, context = make(folder, "Structured", inputs=(X, Y), outputs=names, method="script")
    bundle = packaged(folder, context, "Structured", names)[1].output("bundle")
    with compilation(bundle, folder / "build") as started:
        yield bundle, started
        started.kill()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory, exported, scripted):
    """Compiled once for all tests: torch's headers take 20 s; those of `scripted` meanwhile."""
    folder = tmp_path_factory.mktemp("compiled")
    params = aotinductor.AotInductorParams(aotinductor.AotInductorOptions())
    inputs = {"program": exported.output("program")}
    return run_step(aotinductor.KIND, params, folder, inputs)[1]


@pytest.mark.slow
def test_machine_code_gives_what_the_module_gives(tmp_path, compiled):
    outcome, report = judged(tmp_path, "TwoInputs", compiled, inputs=(X, Y), names=("sum",))

    assert outcome.findings == ()
    assert report["format"] == "aotinductor"
    assert outcome.metrics["points_passed"] == 4


@pytest.mark.slow
def test_machine_code_holds_no_path_and_no_source(compiled):
    file = compiled.output("program") / "model.pt2"
    names = zipfile.ZipFile(file).namelist()
    assert sum(name.endswith(".so") for name in names) == 1
    assert not [name for name in names if name.endswith((".cpp", ".h"))]
    content = file.read_bytes()
    assert not re.search(rb"/tmp[a-z0-9_]{8}/", content)  # a random folder's name
    for folder in (compiled.scratch, ROOT, Path(sys.prefix), Path(sys.base_prefix), Path.home()):
        assert str(folder).encode() not in content


def packaged(folder, context, name="TwoInputs", names=("sum",), **judging):
    """The bundle of a program that was judged."""
    judged(folder, name, context, inputs=(X, Y), names=names, **judging)
    params = package.PackageProgramParams("0", "two", "0" * 64, (BATCH,))
    report = folder / "validate" / "out" / "report"
    inputs = {"program": context.output("program"), "validation": report}
    return run_step(package.PROGRAM, params, folder / "package", inputs)


def printed_by(command, folder):
    return subprocess.run(
        list(map(str, command)),
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    ).stdout


@pytest.mark.parametrize("options", [{}, {"method": "script"}], ids=str)
def test_a_bundle_holds_what_a_stranger_needs(tmp_path, options):
    _, context = make(tmp_path, "TwoInputs", inputs=(X, Y), outputs=("sum",), **options)
    outcome, made = packaged(tmp_path, context)

    bundle = made.output("bundle")
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["kind"] == "torchscript"
    assert [each["name"] for each in manifest["outputs"]] == ["sum"]
    assert manifest["inputs"][0] == {"name": "x", "dtype": "float32", "shape": ["batch", 4]}
    assert manifest["validation"]["cpu"]["passed"]
    assert manifest["dynamic_axes"] == {
        "batch": {"min": 1, "max": 8, "example": 3, "multiple_of": 1}
    }
    assert outcome.metrics["model_bytes"] == (bundle / "model.pt").stat().st_size
    assert outcome.metrics["files"] == [
        "cpp/CMakeLists.txt", "cpp/example.h", "cpp/main.cpp", "load.py", "manifest.json",
        "model.pt", "validation.json", "SHA256SUMS",
    ]  # fmt: skip
    for line in (bundle / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((bundle / name).read_bytes()).hexdigest() == digest


def compilation(bundle, build):
    """A bundle's program in C++ on its way to `build`, as docs/formats.md has it."""
    import torch

    prefix = f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}"
    script = 'cmake -S "$1" -B "$2" "$3" && cmake --build "$2"'
    return subprocess.Popen(
        ["sh", "-c", script, "sh", bundle / "cpp", build, prefix],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
@pytest.mark.parametrize("form", ["aotinductor", "torchscript"])
def test_the_program_in_cpp_prints_what_python_prints(tmp_path, form, request):
    if form == "aotinductor":
        bundle = packaged(tmp_path, request.getfixturevalue("compiled"))[1].output("bundle")
        started = compilation(bundle, tmp_path / "build")
    else:
        bundle, started = request.getfixturevalue("scripted")
    reported = started.communicate(timeout=300)[0]
    assert started.returncode == 0, reported
    build = Path(started.args[5])

    file = json.loads((bundle / "manifest.json").read_text())["file"]
    printed = printed_by([build / "example", bundle / file], tmp_path)
    assert printed == printed_by([sys.executable, "-I", "load.py"], bundle)
    named = [line for line in printed.splitlines() if not line.startswith(" ")]
    first, last = named[0], named[-1]
    assert last == "sum float32 [3, 4]"
    if form == "torchscript":
        assert first == "more.b float32 [3, 4]"
        assert printed.splitlines()[1].startswith(" 0.25 0.5 0.75 1 "), "x + 1"
    failed = subprocess.run(
        [build / "example", tmp_path / "nothing"], capture_output=True, text=True, check=False
    )
    assert failed.returncode == 1
    assert "nothing" in failed.stderr
