"""An artifact is its kind, its paths and its contents."""

from __future__ import annotations

import pytest

from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest

ONE, TWO = Digest.of(b"one"), Digest.of(b"two!")
WHOLE = Artifact("onnx-model", (("model.onnx", ONE), ("model.onnx.data", TWO)))


def test_the_order_of_files_does_not_count():
    turned = Artifact("onnx-model", tuple(reversed(WHOLE.files)))
    assert turned == WHOLE
    assert turned.sha256 == WHOLE.sha256


@pytest.mark.parametrize(
    "other",
    [
        Artifact("bundle", WHOLE.files),
        Artifact("onnx-model", (("model.onnx", TWO), ("model.onnx.data", ONE))),
        Artifact("onnx-model", (("model.onnx", Digest(ONE.sha256, 4)), ("model.onnx.data", TWO))),
    ],
    ids=["kind", "swapped", "size"],
)
def test_kind_paths_contents_and_sizes_count(other):
    assert other.sha256 != WHOLE.sha256


def test_its_size_is_the_sum_of_its_files():
    assert WHOLE.size_bytes == 7


def test_what_was_written_reads_back():
    assert Artifact.from_json(WHOLE.to_json()) == WHOLE


@pytest.mark.parametrize("value", [{}, {"kind": "x", "files": [["p", "s"]]}])  # fmt: skip
def test_what_is_no_artifact_is_refused(value):
    with pytest.raises((KeyError, TypeError, ValueError)):
        Artifact.from_json(value)
