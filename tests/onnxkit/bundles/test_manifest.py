"""One description for every kind of bundle: written, read, and refused where it says nonsense."""

import dataclasses
import json

import pytest

from onnxbuild.core.digest import Digest
from onnxbuild.onnxkit.bundles.manifest import (
    BundleTarget,
    Manifest,
    ManifestProvider,
    Value,
    Verdict,
    read_manifest,
    to_manifest,
)
from onnxbuild.onnxkit.host.made_for import MadeFor
from onnxbuild.onnxkit.sessions.custom_operators import OperatorLibrary
from onnxbuild.onnxkit.sessions.settings import SessionSettings

FILES = {"model.pt": Digest("ab" * 32, 10), "load.py": Digest("cd" * 32, 5)}
CPU = "CPUExecutionProvider"
TARGET = BundleTarget((ManifestProvider(CPU, {}),), SessionSettings(config={"a": "1"}))


def manifest(**more) -> Manifest:
    known = {
        "name": "net",
        "kind": "torchscript",
        "file": "model.pt",
        "precision": "fp32",
        "recipe_sha256": "0" * 64,
        "inputs": (Value("x", "float32", ("batch", 4)),),
        "outputs": (Value("y"),),
        "dynamic_axes": {"batch": {"min": 1, "max": 8, "example": 2, "multiple_of": 1}},
        "validation": {"cpu": Verdict(passed=True, tolerances={}, metrics={"max_abs": None})},
        "versions": {"onnxbuild": "0"},
        "files": FILES,
        "size_bytes": 10,
    }
    return Manifest(**{**known, **more})


WHOLE = {
    "torchscript": manifest(by_keyword=True),
    "aotinductor": manifest(
        kind="aotinductor", by_keyword=False, made_for=MadeFor("x86_64", "A CPU", {"avx2": True})
    ),
    "int8": manifest(
        kind="onnx",
        variant="int8",
        targets={"cpu": TARGET, "cuda": BundleTarget((), SessionSettings(), skipped="no GPU")},
        providers=(ManifestProvider(CPU, {}, "cpu"),),
        session=TARGET.session,
        opsets={"ai.onnx": 18},
        sums_may_saturate=False,
    ),
    "int8-tensorrt": manifest(
        kind="tensorrt", variant="int8", targets={"tensorrt": TARGET}, folder_options=("cache",)
    ),
}


@pytest.mark.parametrize("bundle", WHOLE)
def test_what_is_written_is_what_is_read(bundle):
    written = json.loads(json.dumps(to_manifest(WHOLE[bundle])))
    assert written["schema_version"] == 2
    assert read_manifest(written) == WHOLE[bundle]
    assert read_manifest(written).bundle == bundle


def test_a_key_that_says_nothing_of_such_a_bundle_is_left_out():
    program, variant = to_manifest(WHOLE["torchscript"]), to_manifest(WHOLE["int8"])
    assert not {"targets", "providers", "opsets", "facts", "variant"} & set(program)
    assert program["made_for"] is None
    assert program["validation"]["cpu"]["metrics"] == {"max_abs": None}
    assert (variant["evaluation"], variant["sums_may_saturate"]) == ({}, False)
    assert set(variant["targets"]["cpu"]) == {"chain", "session"}
    assert set(variant["targets"]["cpu"]["chain"][0]) == {"name", "options"}
    assert variant["targets"]["cuda"]["skipped"] == "no GPU"


def test_machine_code_says_for_people_what_it_is_bound_to():
    assert WHOLE["aotinductor"].bound_to == "x86_64, A CPU (avx2)"
    assert WHOLE["torchscript"].bound_to == ""
    assert manifest(made_for=MadeFor("arm64", "B", {}, "GPU 1")).bound_to == (
        "arm64, B, GPU 1 (no flags)"
    )


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"schema_version": 3}, "its schema_version is not 2"),
        ({"kind": "../x"}, "its kind is '../x'; expected letters, digits"),
        ({"file": "../model.pt"}, "its file is '../model.pt', which is no name of a file"),
        ({"size_bytes": 11}, "its size_bytes is 11; its model's files have 10"),
        ({"by_keyword": None}, "it names no target"),
        ({"more": 1}, "unknown key 'more'"),
    ],
)
def test_one_that_says_nonsense_is_refused_by_name(change, reported):
    with pytest.raises(ValueError) as caught:
        read_manifest({**to_manifest(WHOLE["torchscript"]), **change})
    assert reported in str(caught.value)


@pytest.mark.parametrize("content", [None, [], "text", {}, {"schema_version": 2, "targets": 1}])
def test_what_is_no_manifest_is_no_bug(content):
    with pytest.raises(ValueError, match=r"it is no m|its schema_version is not 2|missing"):
        read_manifest(content)


LIBRARY = OperatorLibrary("operators/linux-x86_64/libfancy.so", ("linux-x86_64",))
ON_CUDA = BundleTarget(
    (ManifestProvider("CUDAExecutionProvider", {}), ManifestProvider(CPU, {})), TARGET.session
)


@pytest.mark.parametrize(
    ("more", "runs_code"),
    [
        ({"kind": "new", "targets": {"cpu": TARGET}}, False),
        ({"kind": "new", "targets": {"cpu": TARGET, "cuda": ON_CUDA}}, True),
        ({"kind": "new", "targets": {"cpu": TARGET}, "folder_options": ("caches",)}, True),
        ({"kind": "onnx", "targets": {"cuda": ON_CUDA}}, False),
        ({"kind": "torchscript", "targets": None, "by_keyword": False}, True),
        ({"kind": "onnx", "targets": {"cpu": TARGET}, "by_keyword": True}, True),
        ({"kind": "onnx", "targets": {"cpu": TARGET}, "operators": (LIBRARY,)}, True),
    ],
)
def test_programs_libraries_and_what_a_provider_compiled_may_run_code(more, runs_code):
    assert manifest(**more).runs_code is runs_code


def test_libraries_are_files_below_the_bundles_folder_of_them_and_no_part_of_the_models_size():
    digest = Digest("ab" * 32, 7)
    files = {"model.onnx": digest, LIBRARY.file: digest}
    made = manifest(
        kind="onnx", targets={"cpu": TARGET}, operators=(LIBRARY,), files=files, size_bytes=7
    )
    assert read_manifest(to_manifest(made)).size_bytes == 7
    for file in ("model.onnx", "operators/none.so", "operators/../../libc.so", "/usr/lib/libc.so"):
        other = dataclasses.replace(made, operators=(OperatorLibrary(file, ("linux-x86_64",)),))
        with pytest.raises(ValueError, match="which is no file of its operators/"):
            read_manifest(to_manifest(other))
