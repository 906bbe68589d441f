"""Web packages of small ONNX models, made by the real step."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from onnxbuild.core.environment import Environment
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.target import CPU_TARGET
from onnxbuild.features.packages.web import FEATURE, PackageWebParams
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import (
    BundleTarget,
    Manifest,
    ManifestProvider,
    Value,
    to_manifest,
)
from onnxbuild.onnxkit.bundles.write import described
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.onnxkit.web.content import NPM_LIST
from tests.fakes.step_context import run_step

BATCH = {"batch": {"min": 1, "max": 8, "example": 2, "multiple_of": 1}}
WORDS = ("blue", "green", "red")
STRICT = VariantTolerances(atol=1e-5, rtol=1e-4, equal_min=1.0)


def picture_model(*, mixed: bool = False) -> onnx.ModelProto:
    """image [batch, 1, 8, 8] -> logits [batch, 10]; mixed: through int64, which WebGPU leaves to WebAssembly."""
    weights = np.random.default_rng(0).normal(size=(64, 10)).astype(np.float32)
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["product" if mixed else "logits"]),
    ]
    if mixed:
        nodes += [
            helper.make_node("Cast", ["product"], ["whole"], to=TensorProto.INT64),
            helper.make_node("Neg", ["whole"], ["negative"]),
            helper.make_node("Cast", ["negative"], ["logits"], to=TensorProto.FLOAT),
        ]
    return _model(
        nodes,
        [("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [("logits", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(weights, "weights")],
    )


def text_model() -> onnx.ModelProto:
    """text [batch] -> label [batch], probabilities [batch, 3]: the place of a word among three."""
    nodes = [
        helper.make_node(
            "LabelEncoder", ["text"], ["place"], domain="ai.onnx.ml",
            keys_strings=WORDS, values_int64s=[0, 1, 2], default_int64=0,
        ),
        helper.make_node("OneHot", ["place", "depth", "values"], ["probabilities"]),
        helper.make_node(
            "LabelEncoder", ["place"], ["label"], domain="ai.onnx.ml",
            keys_int64s=[0, 1, 2], values_strings=WORDS, default_string="?",
        ),
    ]  # fmt: skip
    constants = [
        numpy_helper.from_array(np.array([3]), "depth"),
        numpy_helper.from_array(np.array([0.05, 0.9], np.float32), "values"),
    ]
    return _model(
        nodes,
        [("text", TensorProto.STRING, ["batch"])],
        [
            ("label", TensorProto.STRING, ["batch"]),
            ("probabilities", TensorProto.FLOAT, ["batch", 3]),
        ],
        constants,
    )


TYPES = {
    "ids": TensorProto.INT64, "half": TensorProto.FLOAT16, "flags": TensorProto.BOOL, "bytes": TensorProto.UINT8,
    "double": TensorProto.DOUBLE, "text": TensorProto.STRING, "large": TensorProto.UINT64,
}  # fmt: skip


def typed_model() -> onnx.ModelProto:
    """One input of each of TYPES, [batch], and what comes out is what went in."""
    return _model(
        [helper.make_node("Identity", [name], [f"{name}_out"]) for name in TYPES],
        [(name, code, ["batch"]) for name, code in TYPES.items()],
        [(f"{name}_out", code, ["batch"]) for name, code in TYPES.items()],
    )


def lacking_model() -> onnx.ModelProto:
    """A Where of int8, which ONNX Runtime has a kernel for and its web build has none."""
    return _model(
        [
            helper.make_node("Cast", ["x"], ["condition"], to=TensorProto.BOOL),
            helper.make_node("Where", ["condition", "x", "x"], ["y"]),
        ],
        [("x", TensorProto.INT8, ["batch"])],
        [("y", TensorProto.INT8, ["batch"])],
    )


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[tuple[str, int, list[str | int]]],
    outputs: Sequence[tuple[str, int, list[str | int]]],
    constants: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(*each) for each in outputs],
        constants,
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def bundle(
    folder: Path,
    model: onnx.ModelProto,
    *,
    external: bool = False,
    session: SessionSettings | None = None,
) -> Path:
    """Write a bundle as a variant has it, without reports."""
    folder.mkdir(parents=True)
    saved = onnx.ModelProto()
    saved.CopyFrom(model)  # what is saved with external data has none left
    onnx.save(
        saved, folder / "model.onnx",
        save_as_external_data=external, location="model.onnx.data", size_threshold=0,
    )  # fmt: skip
    graph = model.graph
    chain = (ManifestProvider("CPUExecutionProvider", {}),)
    files = {path.name: described(path) for path in sorted(folder.iterdir())}
    manifest = Manifest(
        name="demo",
        kind="onnx",
        file="model.onnx",
        precision="fp32",
        recipe_sha256="0" * 64,
        inputs=tuple(map(_value, graph.input)),
        outputs=tuple(map(_value, graph.output)),
        dynamic_axes=BATCH,
        validation={},
        versions={"onnxruntime": onnxruntime.__version__},
        files=files,
        size_bytes=sum(each.size_bytes for each in files.values()),
        variant="fp32",
        targets={CPU_TARGET.name: BundleTarget(chain, session or SessionSettings())},
        session=session or SessionSettings(),
    )
    (folder / "manifest.json").write_text(json.dumps(to_manifest(manifest)))
    return folder


def _value(info: onnx.ValueInfoProto) -> Value:
    tensor = info.type.tensor_type
    code = tensor.elem_type
    dtype = "string" if code == TensorProto.STRING else helper.tensor_dtype_to_np_dtype(code).name
    shape = tuple(each.dim_param or each.dim_value for each in tensor.shape.dim)
    return Value(info.name, dtype, shape)


def reference(
    folder: Path, model: onnx.ModelProto, feeds: Sequence[Mapping[str, np.ndarray]]
) -> Path:
    """Write what ONNX Runtime gives for inputs."""
    folder.mkdir(parents=True)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [each.name for each in session.get_outputs()]
    writer = ReferenceWriter(folder)
    for number, each in enumerate(feeds):
        outputs = session.run(None, dict(each))
        writer.add(
            ReferencePoint(f"point {number}", {}, each, dict(zip(names, outputs, strict=True)))
        )
    writer.finish()
    return folder


def package(
    folder: Path,
    model: onnx.ModelProto,
    feeds: Sequence[Mapping[str, np.ndarray]],
    environment: Path,
    *,
    providers: tuple[str, ...] = ("wasm",),
    labels: Sequence[str] = (),
    external: bool = False,
    session: SessionSettings | None = None,
) -> Path:
    """Return the folder of a web package; next to it are `bundle` and `reference`."""
    source = bundle(folder / "bundle", model, external=external, session=session)
    golden = reference(folder / "reference", model, feeds)
    listed = folder / "labels.txt"
    listed.write_text("".join(f"{each}\n" for each in labels))
    params = PackageWebParams(
        title="Demo <1>",
        description="a model & its page",
        providers=providers,
        threads=4,
        page=True,
        labels=Entrypoint("", files=(str(listed),)) if labels else None,
        values=(0, 1),
        tolerances=STRICT,
        environment=Environment(npm=NPM_LIST, folder=str(environment)),
    )
    inputs = {"bundle": source, "reference": golden}
    _, context = run_step(FEATURE.kind, params, folder / "step", inputs)
    return context.output("bundle")


def reference_of(out: Path, folder: Path) -> Path:
    """Write the golden points of a package as the reference that they were."""
    folder.mkdir()
    writer = ReferenceWriter(folder)
    for point in json.loads((out / "golden/points.json").read_text()):
        sides = [
            {
                each["name"]: np.frombuffer(
                    (out / "golden" / each["file"]).read_bytes(), each["dtype"]
                ).reshape(each["shape"])
                for each in point[side]
            }
            for side in ("inputs", "outputs")
        ]
        writer.add(ReferencePoint(point["name"], point["sizes"], *sides))
    writer.finish()
    return folder
