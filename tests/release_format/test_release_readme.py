"""The README of a release: of which model the golden outputs are, and what was measured."""

import pytest

from onnxbuild.lock.model import Lock
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.release_format.figures import figures_of
from onnxbuild.release_format.readme import readme


def written(results):
    """The page of a release with one variant, `fp32`, measured as `results` say."""
    measurements = {
        "r:benchmark": {"points": [{"point": "batch=1", "results": results}], "host": {}}
    }
    lock = Lock("r.yaml", "0", {}, {}, "3.11", {}, {}, {}, {}, {}, {}, measurements)
    manifest = Manifest("r", "onnx", "model.onnx", "fp32", "", (), (), {}, {}, {})
    entry = {"variant": "fp32", "bundle": "variants/fp32", "benchmarks": {"cpu": "r:benchmark"}}
    about = {
        "schema_version": 8,
        "name": "r",
        "version": "1",
        "onnxbuild": "0",
        "variants": {"fp32": entry},
        "formats": {},
        "ahead_of_time": {},
        "bundles": {},
        "packages": {},
        "measurements": {},
        "source": {"commit": "c", "dirty": False, "changed": []},
    }  # fmt: skip
    return readme(about, lock, {"fp32": manifest}, {"fp32": figures_of(entry, manifest, lock)})


def took(p50_ms, **more):
    return {"p50_ms": p50_ms, "p50_low_ms": p50_ms, "p50_high_ms": p50_ms, **more}


def test_a_release_that_was_not_measured_next_to_pytorch_does_not_speak_of_it():
    page = written({"fp32": took(2.0)})
    assert "PyTorch" not in page
    assert "the original model's outputs" in page


def test_a_release_that_was_says_how_many_times_as_fast():
    speedup = {"speedup": 2.0, "speedup_low": 1.9, "speedup_high": 2.1}
    page = written({"fp32": took(2.0, **speedup), "pytorch": took(4.0)})
    assert "vs PyTorch |" in page
    assert "2.0" in page


@pytest.mark.parametrize(
    ("p50_ms", "cell"),
    [(0.0177, "0.0177 ms"), (999.4, "999 ms"), (999.6, "1,000 ms"), (1234.5, "1,234 ms")],
)
def test_times_are_written_out(p50_ms, cell):
    assert f"| {cell} (batch=1) |" in written({"fp32": took(p50_ms)})
