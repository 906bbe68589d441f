"""The package for phones: what it says, in which languages, and what its run step refuses."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.features.packages.ort_mobile import FEATURE, PackageOrtMobileParams
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.write import names_below
from onnxbuild.onnxkit.ort_mobile.languages import KOTLIN, TYPESCRIPT
from onnxbuild.onnxkit.packages.package_run import NamedRunParams
from tests.fakes.step_context import run_step
from tests.native.packages import write_ort_bundle, write_reference
from tests.servers import missing

TOLERANCES = VariantTolerances(atol=1e-6, rtol=1e-6, equal_min=1.0)
EVERYWHERE = ["float32", "int64", "string", "uint8", "int32", "int8"]
SERVERS = Path(__file__).parents[3] / ".servers"


def packaged(folder, dtypes):
    """(outcome, the package)."""
    bundle = write_ort_bundle(folder / "bundle", folder / "scratch", dtypes)
    inputs = {
        "bundle": bundle,
        "model": folder / "scratch/onnx",
        "reference": write_reference(folder / "reference", dtypes),
    }
    params = PackageOrtMobileParams(TOLERANCES)
    outcome, context = run_step(FEATURE.kind, params, folder / "step", inputs)
    return outcome, context.output("bundle")


def run(folder, package, variant="fp32"):
    params = NamedRunParams("the package", TOLERANCES, "all types", variant)
    inputs = {"package": package, "reference": folder / "reference"}
    return run_step(FEATURE.run, params, folder / "run", inputs)[0]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(folder, outcome, package) of types that all languages have."""
    folder = tmp_path_factory.mktemp("mobile")
    return folder, *packaged(folder, EVERYWHERE)


def test_the_same_model_gives_the_same_bytes_in_all_languages(made, tmp_path):
    _, outcome, package = made
    other = packaged(tmp_path, EVERYWHERE)[1]
    names = names_below(package)
    assert names == names_below(other)
    assert all((package / name).read_bytes() == (other / name).read_bytes() for name in names)
    sources = {"android/AllTypesFp32.kt", "ios/AllTypesFp32.swift", "react-native/AllTypesFp32.ts"}
    assert sources <= set(names)
    assert outcome.notes == ()
    assert json.loads((package / "sizes.json").read_text())["weights_bytes"] == 4


def test_sources_name_what_the_model_has_and_the_settings_that_it_needs(made):
    package = made[2]
    kotlin = (package / "android/AllTypesFp32.kt").read_text()
    assert "package all_types_fp32\n" in kotlin
    assert (
        '/** "in.string": string [batch, 3] */\n        val inString: Tensor<Array<String>>'
        in kotlin
    )
    assert 'addConfigEntry("session.enable_saved_runtime_optimizations", "1")' in kotlin
    swift = (package / "ios/AllTypesFp32.swift").read_text()
    assert '"in.int64": try value(inputs.inInt64, ORTTensorElementDataType.int64),' in swift
    typescript = (package / "react-native/AllTypesFp32.ts").read_text()
    assert "readonly inInt64: Values<BigInt64Array>;" in typescript
    readme = (package / "README.md").read_text()
    assert "`in.float32` is `inFloat32`" in readme
    assert "| XNNPACK | 0 of 6 |" in readme


def test_the_model_is_opened_and_judged(made):
    folder, _, package = made
    outcome = run(folder, package)
    assert outcome.findings == ()
    assert (outcome.metrics["points"], outcome.metrics["points_passed"]) == (2, 2)


def test_a_damaged_package_is_refused(made, tmp_path):
    folder, _, package = made
    copy = shutil.copytree(package, tmp_path / "package")
    shutil.copytree(folder / "reference", tmp_path / "reference")
    (copy / "model.ort").write_bytes(b"ORTM")
    with pytest.raises(StepError, match=r"model\.ort is another file"):
        run(tmp_path, copy)


def test_a_language_whose_api_lacks_a_type_has_no_source_and_that_is_said(tmp_path):
    outcome, package = packaged(tmp_path, ["float16", "bool"])
    assert outcome.notes == (
        "no source for Swift: ONNX Runtime's API there has no bool and no float16",
        "no source for TypeScript (React Native): ONNX Runtime's API there has no float16",
    )
    assert [each.name for each in (package / "android").iterdir()] == ["AllTypesFp32.kt"]
    assert not (package / "ios").exists()
    assert "none for Swift" in (package / "README.md").read_text()


def test_a_literal_is_no_template():
    assert KOTLIN.quoted('a$b"é') == '"a\\$b\\"\\u00e9"'


@pytest.mark.slow
def test_tsc_accepts_the_source_against_the_types_of_react_native(tmp_path):
    compiler, node = SERVERS / "npm/node_modules/typescript/bin/tsc", shutil.which("node")
    if not compiler.exists() or node is None:
        missing("Node or TypeScript")
    package = packaged(tmp_path, [each for each in TYPESCRIPT.forms if each != "uint64"])[1]
    source = tmp_path / "AllTypesFp32.ts"
    text = (package / "react-native/AllTypesFp32.ts").read_text()
    source.write_text(text)
    (tmp_path / "node_modules").symlink_to(SERVERS / "npm/node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    options = [
        "--strict",
        "--noEmit",
        "--skipLibCheck",
        "--target",
        "es2022",
        "--module",
        "nodenext",
    ]

    def checked():
        done = subprocess.run(
            [node, compiler, *options, source],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    assert checked() == (0, "")
    source.write_text(text.replace("InferenceSession.create(", "InferenceSession.make("))
    assert checked()[0] != 0
