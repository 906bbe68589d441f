"""One spelling for each value; an artifact is its kind, its paths and its contents."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest, canonical_json, tagged_sha256

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=10,
)  # fmt: skip


def test_a_digest_is_the_whole_sha256_and_the_size():
    assert Digest.of(b"abc") == Digest(hashlib.sha256(b"abc").hexdigest(), 3)


@given(VALUES)
def test_canonical_json_is_ascii_and_reads_back(value):
    text = canonical_json(value)
    assert text.isascii()
    assert json.loads(text) == value


@given(st.dictionaries(st.text(max_size=3), st.integers(), min_size=2))
def test_the_order_of_keys_does_not_count(value):
    turned = dict(reversed(value.items()))
    assert canonical_json(turned) == canonical_json(value)
    assert tagged_sha256("t", turned) == tagged_sha256("t", value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_json_cant_spell_is_refused(value):
    with pytest.raises(ValueError, match="Out of range float"):
        canonical_json({"x": value})


def test_the_tag_counts():
    assert tagged_sha256("artifact", [1]) != tagged_sha256("action/1", [1])
    assert tagged_sha256("a", ["b", 1]) != tagged_sha256("b", ["a", 1])


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
