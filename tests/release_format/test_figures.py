"""The numbers of a bundle, as its README and its model card state them."""

from onnxbuild.lock.model import Lock
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.release_format.figures import figures_of


def test_latencies_have_the_order_of_the_file_and_not_of_the_recipe():
    """release.json sorts its keys, so whoever reads it knows no other order."""

    def measured(p50_ms):
        results = {"fp32": {"p50_ms": p50_ms, "p50_low_ms": p50_ms, "p50_high_ms": p50_ms}}
        return {"points": [{"point": "example", "results": results}]}

    measurements = {"r:benchmark": measured(2.0), "r:benchmark-cpu": measured(1.0)}
    lock = Lock("r.yaml", "0", {}, {}, "3.11", {}, {}, {}, {}, {}, {}, measurements)
    manifest = Manifest("r", "onnx", "model.onnx", "fp32", "", (), (), {}, {}, {})
    benchmarks = {"openvino": "r:benchmark", "cpu": "r:benchmark-cpu"}
    variant = {"variant": "fp32", "benchmarks": benchmarks}
    found = figures_of(variant, manifest, lock)
    assert [(each.provider, each.p50_ms) for each in found.latencies] == [
        ("cpu", 1.0),
        ("openvino", 2.0),
    ]
