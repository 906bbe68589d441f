"""Find the operators of a model that ONNX Runtime Web has no kernels for: each is tried alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE
from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.packages.package_run import run_program
from onnxbuild.onnxkit.web.content import BUILDS, FOLDER

AS_LINKED = ("--preserve-symlinks", "--preserve-symlinks-main")
"""Options of Node: a step's inputs are links into the store, where modules have other names."""

_MOST_CONSTANT = 64
"""Elements of a constant that a trial keeps: shapes, axes, pads; weights become inputs."""

_TRY = """\
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const [, , js, wasm, folder, answer] = process.argv;
const ort = await import(pathToFileURL(js).href);
ort.env.logLevel = "fatal";
ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmBinary = readFileSync(wasm);
const found = {};
for (const name of readdirSync(folder).sort()) {
  try {
    const session = await ort.InferenceSession.create(new Uint8Array(readFileSync(`${folder}/${name}`)));
    await session.release();
  } catch (error) {
    found[name] = String(error.message ?? error);
  }
}
writeFileSync(answer, JSON.stringify(found));
"""
_SAYS_LACKING = (
    "Could not find an implementation", "NOT_IMPLEMENTED", "is not a registered function/op",
    "No Op registered for", "No opset import for domain",
)  # fmt: skip


def is_of_operators(said: str) -> bool:
    """Return whether an error of the runtime is that it has no kernel for an operator."""
    return any(each in said for each in _SAYS_LACKING)


def lacking_operators(package: Path, node: str, scratch: Path) -> tuple[str, ...]:
    """Return `DOMAIN::OPERATOR (types of its inputs)` of those that the runtime has no kernel for; sorted."""
    file = json.loads((package / MANIFEST_FILE).read_text("utf-8"))["file"]
    if file.endswith(".ort"):  # in a form that onnx does not read
        return ()
    model = onnx.load(package / file, load_external_data=False)
    trials, names = scratch / "trials", {}
    trials.mkdir()
    for number, (name, trial) in enumerate(_trials(model)):
        names[f"{number:05}.onnx"] = name
        (trials / f"{number:05}.onnx").write_bytes(trial.SerializeToString())
    script, answer = scratch / "try.mjs", scratch / "answer.json"
    script.write_text(_TRY, encoding="utf-8")
    build = BUILDS["wasm"]
    runtime = [package / FOLDER / build[key] for key in ("js", "wasm")]
    run_program([node, *AS_LINKED, script, *runtime, trials, answer], scratch)
    if not answer.exists():
        return ()
    said: dict[str, str] = json.loads(answer.read_text("utf-8"))
    lacking = (file for file, why in said.items() if is_of_operators(why))
    return tuple(sorted({names[file] for file in lacking}))


def _trials(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield (name, a model of one node) for each operator with other types of inputs."""
    from onnx import shape_inference

    try:
        inferred = shape_inference.infer_shapes(model)
    except (RuntimeError, ValueError):
        inferred = model
    graph = inferred.graph
    types = {each.name: each.type for each in (*graph.input, *graph.value_info, *graph.output)}
    constants = {each.name: each for each in graph.initializer}
    seen = set()
    for node in graph.node:
        if any(attribute.HasField("g") for attribute in node.attribute):
            continue
        kinds = tuple(_kind(name, types, constants) for name in node.input)
        domain = node.domain or "ai.onnx"
        shown = f"{domain}::{node.op_type} ({', '.join(filter(None, kinds))})"
        if shown in seen:
            continue
        seen.add(shown)
        given, kept = [], []
        for name in dict.fromkeys(filter(None, node.input)):
            constant = constants.get(name)
            if constant is not None and _is_small(constant):
                kept.append(constant)
            elif constant is not None:
                given.append(
                    onnx.helper.make_tensor_value_info(
                        name, constant.data_type, list(constant.dims)
                    )
                )
            elif name in types:
                given.append(onnx.ValueInfoProto(name=name, type=types[name]))
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        for each in results:
            if each.name in types:
                each.type.CopyFrom(types[each.name])
        alone = onnx.helper.make_graph([node], "trial", given, results, kept)
        yield (
            shown,
            onnx.helper.make_model(
                alone, opset_imports=model.opset_import, ir_version=model.ir_version
            ),
        )


def _is_small(constant: onnx.TensorProto) -> bool:
    count = 1
    for size in constant.dims:
        count *= size
    return count <= _MOST_CONSTANT and not constant.external_data


def _kind(
    name: str, types: dict[str, onnx.TypeProto], constants: dict[str, onnx.TensorProto]
) -> str:
    if name in constants:
        code = constants[name].data_type
    elif name in types and types[name].HasField("tensor_type"):
        code = types[name].tensor_type.elem_type
    else:
        return ""
    return str(onnx.TensorProto.DataType.Name(code)).lower()
