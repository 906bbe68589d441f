"""Each way to quantize a model, from its folder to the folder of the result, with `auto` as on this CPU."""

import itertools

import numpy as np
import onnx

from onnxbuild.adapters.machine import host_facts
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.mode_steps.auto_options import without_auto
from onnxbuild.onnxkit.data.calibration_data import DataParams
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.steps import (
    balance,
    calibrate,
    convert_fp16,
    hessians,
    preprocess,
    quantize_dynamic,
    quantize_static,
    quantize_weights,
    round_weights,
)
from tests.fakes.step_context import run_step
from tests.steps.graphs import save

_DTYPES = {1: "float32", 7: "int64", 9: "bool"}


class Case:
    """A model, what it is fed, and what it gives in fp32.

    Args:
        folder: To work in.
        made: The model, or the bytes of one.
        feeds: What it is run on, and calibrated with.
    """

    def __init__(self, folder, made, feeds):
        self.source = save(made, folder / "source")
        self.folder, self.feeds = folder, feeds
        arrays = {f"{n}/{k}": v for n, each in enumerate(feeds) for k, v in each.items()}
        np.savez(folder / "data.npz", **arrays)
        (folder / "data.py").write_text(
            "import numpy as np\n"
            "def data():\n"
            f"    held = np.load({str(folder / 'data.npz')!r})\n"
            f"    for n in range({len(feeds)}):\n"
            "        mine = [key for key in held if key.startswith(f'{n}/')]\n"
            "        yield {key.split('/', 1)[1]: held[key] for key in mine}\n"
        )
        self._expected = self._outputs(self.source)

    def data(self):
        """The entrypoint, the inputs and the axes that steps with data take."""
        graph = onnx.load(self.source / "model.onnx", load_external_data=False).graph
        inputs = tuple(
            DummyInput(each.name, _DTYPES[kind.elem_type], tuple(map(_size, kind.shape.dim)))
            for each in graph.input
            for kind in [each.type.tensor_type]
        )
        symbols = dict.fromkeys(n for each in inputs for n in each.shape if isinstance(n, str))
        axes = tuple(Axis(name, 1, 64, 4) for name in symbols)
        return Entrypoint(f"{self.folder / 'data.py'}:data"), inputs, axes

    def step(self, kind, params, name, output="model", **inputs):
        """Run a step; the folder of an output."""
        given = {"model": self.source, **inputs}
        _, context = run_step(kind, params, self.folder / name, given)
        return context.output(output)

    def cosine(self, target):
        """The least over all feeds, with the optimizations that users' sessions have."""
        pairs = zip(self._expected, self._outputs(target, optimize=True), strict=True)
        return min(float((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in pairs)

    def _outputs(self, folder, *, optimize=False):
        session = open_session(folder, optimize=optimize)
        return [session.run(None, feeds)[0].astype(np.float64) for feeds in self.feeds]


def dynamic(case, name="dynamic", rounded=None, **options):
    reported = quantize_dynamic.DynamicOptions(**options)
    params = quantize_dynamic.DynamicParams(without_auto(reported, host_facts()))
    more = {} if rounded is None else {"rounded": rounded}
    return case.step(quantize_dynamic.KIND, params, name, **more)


def rounded(case):
    kind, params = round_weights.KIND, round_weights.RoundParams(*case.data())
    return dynamic(case, rounded=case.step(kind, params, "round"))


def balanced(case):
    case.source = case.step(balance.KIND, DataParams(*case.data()), "balance")
    return dynamic(case)


def static(case, **options):
    case.source = case.step(preprocess.KIND, preprocess.PreprocessParams(), "preprocess")
    entry, inputs, axes = case.data()
    params = calibrate.CalibrateParams(
        entry, inputs, calibrate.CalibrationOptions(), axes, means=True
    )
    calibration = case.step(calibrate.KIND, params, "calibrate", "calibration")
    reported = quantize_static.StaticOptions(**{"activation_type": "uint8", **options})
    params = quantize_static.StaticParams(without_auto(reported, host_facts()))
    return case.step(quantize_static.KIND, params, "static", calibration=calibration)


def weights_alone(case, hessians=None, **options):
    reported = {"op_types": ("MatMul", "Gemm", "Gather"), "block_size": 16, **options}
    params = quantize_weights.WeightParams(quantize_weights.WeightOptions(**reported))
    more = {} if hessians is None else {"hessians": hessians}
    return case.step(quantize_weights.KIND, params, "weights", **more)


def gptq(case, **options):
    params = DataParams(*case.data(), samples=10, seed=0)
    found = case.step(hessians.KIND, params, "hessians", "hessians")
    return weights_alone(case, hessians=found, method="gptq", **options)


def half(case, **options):
    params = convert_fp16.Fp16Params(convert_fp16.Fp16Options(**options))
    return case.step(convert_fp16.KIND, params, "half")


WAYS = {
    "dynamic": dynamic,
    "dynamic, a scale a tensor": lambda case: dynamic(case, per_channel=False),
    "dynamic, pairs": lambda case: dynamic(case, reduce_range="pairs"),
    "dynamic, rounded": rounded,
    "dynamic, balanced": balanced,
    "static": static,
    "static, a scale a tensor": lambda case: static(case, per_channel=False),
    "static, pairs": lambda case: static(case, reduce_range="pairs"),
    "static, biases corrected": lambda case: static(case, bias_correction=True),
    "8-bit weights": lambda case: weights_alone(case, bits=8),
    "4-bit weights": weights_alone,
    "GPTQ": gptq,
    "fp16": half,
}
LEAST = dict.fromkeys(WAYS, 0.999) | {"4-bit weights": 0.98, "GPTQ": 0.98, "fp16": 0.99999}
"""Cosines: what a sound model has with random weights, far above what a wrong weight leaves."""


def _size(dim):
    return dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "n"


def combinations(cases):
    """Parameters: (name of a case, name of a way)."""
    return list(itertools.product(cases, WAYS))
