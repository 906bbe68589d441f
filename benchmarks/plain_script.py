"""Script as an engineer writes it by hand: MiniLM to ONNX, optimized, quantized, validated. No cache, no record.

The same work as `onnxbuild run recipes/bert.yaml --only fp32/package --only int8/package`: the same
exporter, opset, fusions, quantizer and points of comparison.

    python benchmarks/plain_script.py FOLDER
"""

import hashlib
import importlib.util
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers.fusion_options import FusionOptions
from onnxruntime.transformers.optimizer import optimize_model

POINTS = ((2, 16), (1, 1), (64, 16), (2, 512), (3, 37))

here = Path(__file__).parent
spec = importlib.util.spec_from_file_location("minilm", here.parent / "recipes/models/minilm.py")
minilm = importlib.util.module_from_spec(spec)
spec.loader.exec_module(minilm)

out = Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
model = minilm.load().eval()

generator = np.random.default_rng(0)
feeds = [
    {
        "input_ids": generator.integers(1996, 30522, size=shape),
        "attention_mask": np.ones(shape, np.int64),
    }
    for shape in POINTS
]
feeds += [{name: value.numpy() for name, value in each.items()} for each in minilm.samples()]
with torch.inference_mode():
    expected = [
        model(**{name: torch.from_numpy(value) for name, value in each.items()}).numpy()
        for each in feeds
    ]

batch = torch.export.Dim("batch", min=1, max=64)
sequence = torch.export.Dim("sequence", min=1, max=512)
shapes = {0: batch, 1: sequence}
example = {name: torch.from_numpy(value) for name, value in feeds[0].items()}
program = torch.onnx.export(
    model,
    (),
    kwargs=example,
    dynamo=True,
    verbose=False,
    opset_version=18,
    dynamic_shapes={"input_ids": shapes, "attention_mask": shapes},
    output_names=["last_hidden_state"],
)
program.save(str(out / "export.onnx"))
onnx.checker.check_model(str(out / "export.onnx"), full_check=True)

fused = optimize_model(
    str(out / "export.onnx"),
    model_type="bert",
    num_heads=12,
    hidden_size=384,
    opt_level=1,
    optimization_options=FusionOptions("bert"),
)
fused.save_model_to_file(str(out / "fp32.onnx"))
quantize_dynamic(
    out / "fp32.onnx",
    out / "int8.onnx",
    per_channel=True,
    weight_type=QuantType.QInt8,
    extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
)

for name in ("fp32", "int8"):
    onnx.checker.check_model(str(out / f"{name}.onnx"))
    session = ort.InferenceSession(str(out / f"{name}.onnx"), providers=["CPUExecutionProvider"])
    worst, cosine = 0.0, 1.0
    for each, want in zip(feeds, expected, strict=True):
        (got,) = session.run(None, each)
        a, b = got.astype(np.float64).ravel(), want.astype(np.float64).ravel()
        worst = max(worst, float(np.abs(a - b).max()))
        cosine = min(cosine, float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
    assert cosine > 0.97, cosine
    digest = hashlib.sha256((out / f"{name}.onnx").read_bytes()).hexdigest()
    print(f"{name}: max abs {worst:.2e}, cosine {cosine:.5f}, sha256 {digest[:12]}")
