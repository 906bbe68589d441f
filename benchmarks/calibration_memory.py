"""Peak memory of calibration by number of samples: it must not grow with the data.

    python benchmarks/calibration_memory.py [--methods minmax entropy] [--samples 20 200 2000]

Each measurement is the real step in a process of its own, on a small ResNet-like network whose
activations are about 20 MB a sample, so that keeping those of two thousand would take 40 GB.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
METHODS = ("minmax", "moving_average", "percentile", "entropy", "mse")
SAMPLES = (20, 200, 2000)
CHANNELS, SIDE, LAYERS = 8, 96, 16


def main() -> None:
    """Measure each method at each number of samples; print peaks and ratios to the first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--samples", nargs="+", type=int, default=SAMPLES)
    parser.add_argument("--one", nargs=3, metavar=("METHOD", "SAMPLES", "FOLDER"))
    arguments = parser.parse_args()
    if arguments.one:
        method, samples, folder = arguments.one
        print(_peak_bytes(method, int(samples), Path(folder)))
        return
    print(f"{_activation_bytes() / 1e6:.0f} MB of activations a sample")
    for method in arguments.methods:
        peaks = [_measured(method, samples) for samples in arguments.samples]
        cells = [
            f"{samples:>6} samples {peak / 2**20:6.0f} MiB ({peak / peaks[0]:.2f} x)"
            for samples, peak in zip(arguments.samples, peaks, strict=True)
        ]
        print(f"{method:15}", "   ".join(cells), flush=True)


def _measured(method: str, samples: int) -> int:
    """Peak resident bytes of a fresh process that calibrates."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--one", method, str(samples), folder]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(done.stderr)
    return int(done.stdout)


def _peak_bytes(method: str, samples: int, folder: Path) -> int:
    from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
    from onnxbuild.onnxkit.model.model_files import save_model
    from onnxbuild.steps.calibrate import KIND, CalibrateParams, CalibrationOptions
    from tests.fakes.step_context import run_step

    save_model(_network(), folder / "source")
    params = CalibrateParams(
        Entrypoint(f"{__file__}:images", {"count": samples}),
        (DummyInput("image", "float32", ("batch", CHANNELS, SIDE, SIDE)),),
        CalibrationOptions(method=method, samples=samples),
        (Axis("batch", 1, 8, 2),),
    )
    outcome, _ = run_step(KIND, params, folder / "step", {"model": folder / "source"})
    assert outcome.metrics["samples"] == samples
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def images(count: int) -> Iterator[dict[str, object]]:
    """Random images; an eighth of them in batches of two, so that shapes vary."""
    import numpy as np

    generator = np.random.default_rng(0)
    for number in range(count):
        shape = (1 + (number % 8 == 0), CHANNELS, SIDE, SIDE)
        yield {"image": generator.standard_normal(shape, np.float32)}


def _network() -> object:
    """Convolutions and ReLUs with shortcuts, every value typed."""
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper

    generator = np.random.default_rng(0)
    shape = ["batch", CHANNELS, SIDE, SIDE]
    nodes, weights, last = [], [], "image"
    for n in range(LAYERS):
        kernel = generator.standard_normal((CHANNELS, CHANNELS, 3, 3)) / (3 * CHANNELS**0.5)
        weights.append(numpy_helper.from_array(kernel.astype(np.float32), f"w{n}"))
        conv = helper.make_node("Conv", [last, f"w{n}"], [f"conv{n}"], f"conv{n}", pads=[1] * 4)
        nodes += [
            conv,
            helper.make_node("Relu", [f"conv{n}"], [f"relu{n}"], f"relu{n}"),
            helper.make_node("Add", [last, f"relu{n}"], [f"add{n}"], f"add{n}"),
        ]
        last = f"add{n}"
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("image", 1, shape)],
        [helper.make_tensor_value_info(last, 1, shape)],
        weights,
        value_info=[
            helper.make_tensor_value_info(node.output[0], 1, shape) for node in nodes[:-1]
        ],
    )
    made: onnx.ModelProto = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10
    )
    return made


def _activation_bytes() -> int:
    return (3 * LAYERS + 1) * CHANNELS * SIDE * SIDE * 4


if __name__ == "__main__":
    main()
