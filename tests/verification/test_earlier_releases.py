"""A release made before bundles had one manifest is read as it was: verified, run, compared with."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from onnxbuild.bench.external_models import opened_comparison_models
from onnxbuild.release.previous import read_previous
from tests.verification.conftest import look_at

pytestmark = pytest.mark.slow

FIRST = Path(__file__).parent / "releases/first-manifests.tar.xz"
"""`tiny` of tests/cli/conftest.py: fp32, torchscript, torch-export, fp32-ort, fp32-optimized."""


@pytest.fixture
def first(tmp_path):
    path = tmp_path / "tiny-1.0.tar"
    path.write_bytes(lzma.decompress(FIRST.read_bytes()))
    return path


def test_it_still_verifies_and_its_models_still_run(first):
    done = look_at(first, "--run", "--trust-programs")
    assert done.code == 0, done.out + done.err
    assert "FAILED" not in done.out
    for name in ("fp32", "torchscript", "torch-export", "fp32-ort"):
        assert f"ok      {name} on cpu: 4 golden points within tolerance" in done.out
    assert "fp32-optimized on cpu: " in done.out  # made for one kind of machine: run or skipped


def test_it_can_be_the_previous_release_and_something_to_compare_with(first):
    previous = read_previous(first, "tiny")
    assert set(previous.figures) == {
        "fp32", "torchscript", "torch-export", "fp32-ort", "fp32-optimized",
    }  # fmt: skip
    assert all(each.model_bytes > 0 for each in previous.figures.values())
    assert all("cpu" in each.errors for each in previous.figures.values())
    with opened_comparison_models([first], set()) as models:
        assert {each.name for each in models} == {
            "1.0/fp32",
            "1.0/torchscript",
            "1.0/torch-export",
        }
