"""Bundles of models that hold each element type, with the reference that they are judged by."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnxbuild.core.digest import Digest
from onnxbuild.onnxkit.ahead_of_time.options import OrtFormatOptions
from onnxbuild.onnxkit.ahead_of_time.ort_format import REPLAY, convert_to_ort
from onnxbuild.onnxkit.bundles.manifest import (
    BundleTarget,
    Manifest,
    ManifestProvider,
    Value,
    Verdict,
    to_manifest,
)
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.sessions.settings import SessionSettings

CPU_NAME = "CPUExecutionProvider"
AXES = {"batch": {"min": 0, "max": 8, "example": 2, "multiple_of": 1}}


def identities(dtypes: Sequence[str], folder: Path, scale: float = 1.0) -> onnx.ModelProto:
    """A model with an input `in.DTYPE` and an output `class-DTYPE` for each, (batch, 3), float32 scaled."""
    inputs, outputs, nodes = [], [], []
    for dtype in dtypes:
        code = (
            TensorProto.STRING
            if dtype == "string"
            else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        )
        shape = ["batch", 3]
        inputs.append(helper.make_tensor_value_info(f"in.{dtype}", code, shape))
        outputs.append(helper.make_tensor_value_info(f"class-{dtype}", code, shape))
        if dtype == "float32":
            nodes.append(helper.make_node("Mul", [f"in.{dtype}", "scale"], [f"class-{dtype}"]))
        else:
            nodes.append(helper.make_node("Identity", [f"in.{dtype}"], [f"class-{dtype}"]))
    weights = [
        helper.make_tensor("scale", TensorProto.FLOAT, [], np.float32(scale).tobytes(), raw=True)
    ]
    graph = helper.make_graph(nodes, "identities", inputs, outputs, weights)
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9)
    folder.mkdir(parents=True, exist_ok=True)
    where = {"save_as_external_data": True, "location": "model.onnx.data", "size_threshold": 0}
    onnx.save(model, folder / "model.onnx", **where)
    return model


def write_bundle(folder: Path, dtypes: Sequence[str], scale: float = 1.0, **changes: Any) -> Path:
    """A bundle of `identities`: model, weights and manifest."""
    identities(dtypes, folder, scale)
    contents = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    files = {n: Digest(hashlib.sha256(c).hexdigest(), len(c)) for n, c in contents.items()}
    provider = ManifestProvider(CPU_NAME, {})
    plain = {
        "name": "all types",
        "variant": "fp32",
        "kind": "onnx",
        "file": "model.onnx",
        "precision": "fp32",
        "recipe_sha256": "0" * 64,
        "inputs": tuple(Value(f"in.{each}", each, ("batch", 3)) for each in dtypes),
        "outputs": tuple(Value(f"class-{each}", each, ("batch", 3)) for each in dtypes),
        "dynamic_axes": AXES,
        "validation": {"cpu": Verdict(passed=True, tolerances=None, metrics=None)},
        "versions": {"onnxruntime": "1.31.1"},
        "files": files,
        "size_bytes": sum(each.size_bytes for each in files.values()),
        "targets": {"cpu": BundleTarget((provider,), SessionSettings(intra_op_threads=1))},
        "providers": (ManifestProvider(CPU_NAME, {}, "cpu"),),
    }
    manifest = Manifest(**{**plain, **changes})
    (folder / "manifest.json").write_text(json.dumps(to_manifest(manifest)))
    return folder


def write_ort_bundle(folder: Path, scratch: Path, dtypes: Sequence[str]) -> Path:
    """The same in ORT format, as `ahead_of_time: {ort: {}}` makes it."""
    identities(dtypes, scratch / "onnx")
    options = OrtFormatOptions(style="runtime")
    folder.mkdir(parents=True)
    (scratch / "work").mkdir()
    convert_to_ort(scratch / "onnx", folder, scratch / "work", options, "test")
    session = SessionSettings(config={**REPLAY})
    target = BundleTarget((ManifestProvider(CPU_NAME, {}),), session)
    about = {"kind": "ort", "file": "model.ort", "targets": {"cpu": target}, "providers": None}
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    write_bundle(scratch / "bundle", dtypes, files={}, size_bytes=0, **about)
    for name, content in {
        **kept,
        "manifest.json": (scratch / "bundle/manifest.json").read_bytes(),
    }.items():
        (folder / name).write_bytes(content)
    return folder


def arrays(dtypes: Sequence[str], rows: int) -> dict[str, np.ndarray]:
    """Values of each type: the ends of integers' ranges, among floats none that is odd."""
    found = {}
    for dtype in dtypes:
        if dtype == "string":
            found[dtype] = np.array(["é\n", "中", ""] * rows).reshape(rows, 3)
        elif np.dtype(dtype).kind in "iu":
            limits = np.iinfo(dtype)
            found[dtype] = np.array([limits.min, 1, limits.max] * rows, dtype).reshape(rows, 3)
        else:
            found[dtype] = np.array([0.5, -2.0, 0.0] * rows).astype(dtype).reshape(rows, 3)
    return found


def write_reference(folder: Path, dtypes: Sequence[str], given: Mapping[str, str] = {}) -> Path:
    """What `identities` gives, at two points, the second with as few rows as go; `given`: type of the model's -> the original's."""
    folder.mkdir(parents=True)
    writer = ReferenceWriter(folder)
    fewest = 1 if "string" in dtypes else 0  # ONNX Runtime's Python takes no empty strings
    for name, rows in (("example", 2), ("fewest", fewest)):
        values = {
            each: array.astype(given.get(each, array.dtype))
            for each, array in arrays(dtypes, rows).items()
        }
        feeds = {f"in.{each}": array for each, array in values.items()}
        outputs = {f"class-{each}": array for each, array in values.items()}
        flags = np.array([True, False]) if rows > 1 else None
        writer.add(ReferencePoint(name, {"batch": rows}, feeds, outputs, flags))
    writer.finish()
    return folder
