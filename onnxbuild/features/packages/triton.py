"""`triton`: a model repository for NVIDIA's Triton Inference Server, with its ONNX Runtime backend."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from onnxbuild.core.errors import StepError
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.params import option
from onnxbuild.core.step import MODEL_FILE, Outcome, StepContext, StepKind
from onnxbuild.expansion.feature import PackageFormat, Subject
from onnxbuild.expansion.packaged import bundle_name, package_address
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.bundles.write import write_sums
from onnxbuild.onnxkit.loaders.operator_libraries import this_platform
from onnxbuild.onnxkit.model.model_files import WEIGHTS_FILE, file_bytes, hand_on

NAME = "triton"
CONFIG_FILE = "config.pbtxt"
_VERSION = "1"

_DTYPES = {
    "bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
    "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64", "float16": "FP16",
    "float32": "FP32", "float64": "FP64", "string": "STRING", "bfloat16": "BF16",
}  # fmt: skip
"""Element type -> Triton's DataType without `TYPE_` (model_config.proto)."""

_LEVELS = {"basic": "-1", "extended": "1", "disable": "2"}
"""Session's graph_optimization -> the backend's `level`; all optimizations are its default."""


@dataclass(frozen=True, slots=True)
class TritonOptions:
    """How Triton serves the model."""

    dynamic_batching: bool = option(
        False, help="let Triton put requests together in one batch; needs a batch axis"
    )
    max_queue_delay_us: int = option(
        0, help="with dynamic_batching: longest time that a request waits for others", minimum=0
    )
    instances: int = option(0, help="copies that run at once on each device; 0: 1", minimum=0)
    device: Literal["auto", "cpu", "gpu"] = option(
        "auto", help="where they run; `auto`: on GPUs where Triton finds any, else on the CPU"
    )


@dataclass(frozen=True, slots=True)
class TritonParams:
    """All that steers it.

    Attributes:
        options: As the recipe has them.
        model: Name that clients ask for, and of the model's folder.
    """

    options: TritonOptions
    model: str


def run(context: StepContext) -> Outcome:
    """Write MODEL/config.pbtxt and MODEL/1/ with the bundle's model, byte for byte, and SHA256SUMS.

    Raises:
        StepError: Triton has no form for an input or output, or no batch axis to batch along.
    """
    params: TritonParams = context.params
    source, repository = context.input("bundle"), context.output("bundle")
    manifest = json.loads((source / "manifest.json").read_text("utf-8"))
    folder = repository / params.model / _VERSION
    folder.mkdir(parents=True)
    for name in (MODEL_FILE, WEIGHTS_FILE):
        if (source / name).exists():
            hand_on(source / name, folder / name)
    operators = _handed_on(source, repository / params.model, manifest)
    batch = batch_axis(manifest)
    if params.options.dynamic_batching and not batch:
        raise StepError(
            "dynamic_batching is asked for, and no axis is the first of every input and output, from size "
            "1 on, and nowhere else",
            where=context.where,
            fix="remove `dynamic_batching`, or give all inputs and outputs one first axis with `min: 1`",
        )
    size = manifest["dynamic_axes"][batch]["max"] if batch else 0
    lines = config_lines(params, manifest, size, context.where)
    own = (
        f"model_operations {{ op_library_filename: {_quoted(f'{params.model}/{file}')} }}"
        for file in operators
    )
    text = "".join(f"{line}\n" for line in (*lines, *own))
    config = repository / params.model / CONFIG_FILE
    config.write_text(text, encoding="utf-8", newline="\n")
    model_bytes = file_bytes(folder)
    metrics = {"model_bytes": model_bytes, "max_batch_size": size, "files": write_sums(repository)}
    dropped = sorted(manifest["session"]["config"])
    notes = []
    if dropped:
        notes.append(f"Triton has no place for session config entries: {', '.join(dropped)}")
    if operators:
        notes.append(
            "Triton looks for the custom operators below its working folder: start tritonserver in the "
            "repository's folder, or write absolute paths in config.pbtxt"
        )
    return Outcome(metrics, notes=tuple(notes))


def _handed_on(source: Path, folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Hand the libraries of custom operators for this platform on; return those that Triton registers."""
    here, registered = this_platform(), []
    for each in manifest.get("operators", ()):
        if here in each["platforms"]:
            (folder / each["file"]).parent.mkdir(parents=True, exist_ok=True)
            hand_on(source / each["file"], folder / each["file"])
            registered += [each["file"]] if each["registers"] else []
    return registered


def batch_axis(manifest: Mapping[str, Any]) -> str:
    """The axis that Triton may batch along; empty where there is none.

    Triton's batches have any size from 1 on, along the first axis of all inputs and outputs.

    Args:
        manifest: A bundle's.
    """
    shapes = [each["shape"] or [] for each in (*manifest["inputs"], *manifest["outputs"])]
    firsts = {shape[0] if shape else "" for shape in shapes}
    (name,) = firsts if len(firsts) == 1 else ("",)
    axis = manifest["dynamic_axes"].get(name)
    if axis is None or axis["min"] > 1 or axis["multiple_of"] > 1 or axis["max"] < 1:
        return ""
    others = {part for shape in shapes for size in shape[1:] for part in str(size).split(" + ")}
    return "" if name in others else str(name)


def config_lines(
    params: TritonParams, manifest: Mapping[str, Any], max_batch_size: int, where: str
) -> Iterator[str]:
    """Yield config.pbtxt: protobuf's text form of Triton's ModelConfig.

    Args:
        params: The model's name, and how it is served.
        manifest: A bundle's.
        max_batch_size: Greatest batch; 0 if shapes hold all axes.
        where: `recipe:step`, for messages.

    Raises:
        StepError: Triton has no form for an input or output.
    """
    yield f"name: {_quoted(params.model)}"
    yield 'backend: "onnxruntime"'
    yield f"default_model_filename: {_quoted(MODEL_FILE)}"
    yield f"max_batch_size: {max_batch_size}"
    for side in ("input", "output"):
        for each in manifest[f"{side}s"]:
            yield f"{side} {{"
            yield f"  name: {_quoted(each['name'])}"
            yield f"  data_type: TYPE_{_data_type(each, where)}"
            shape = _shape(each, manifest, where, is_batched=max_batch_size > 0)
            yield from (f"  {line}" for line in shape)
            yield "}"
    options = params.options
    if options.instances or options.device != "auto":
        kind = {"auto": "KIND_AUTO", "cpu": "KIND_CPU", "gpu": "KIND_GPU"}[options.device]
        yield f"instance_group {{ count: {options.instances or 1} kind: {kind} }}"
    if options.dynamic_batching:
        yield f"dynamic_batching {{ max_queue_delay_microseconds: {options.max_queue_delay_us} }}"
    yield from _session(manifest["session"])


def _quoted(text: str) -> str:
    """A string of protobuf's text form, whose escapes include JSON's."""
    return json.dumps(text, ensure_ascii=False)


def _data_type(value: Mapping[str, Any], where: str) -> str:
    dtype = value["dtype"]
    if dtype not in _DTYPES:
        raise StepError(
            f"'{value['name']}' is {dtype}, which Triton has no data type for",
            where=where,
            fix="take the variant out of `packages: {variants: [...]}`",
        )
    return _DTYPES[dtype]


def _shape(
    value: Mapping[str, Any], manifest: Mapping[str, Any], where: str, *, is_batched: bool
) -> Sequence[str]:
    """`dims`, which may not be empty: [1] stands for a scalar, or for one of each row of a batch."""
    if value["shape"] is None:
        raise StepError(
            f"'{value['name']}' has no known shape, and Triton needs its number of dimensions",
            where=where,
            fix="take the variant out of `packages: {variants: [...]}`",
        )
    dims = [_dim(size, manifest) for size in value["shape"]][1 if is_batched else 0 :]
    if dims:
        return (f"dims: [ {', '.join(map(str, dims))} ]",)
    return ("dims: [ 1 ]", "reshape { shape: [ ] }") if is_batched else ("dims: [ 1 ]",)


def _dim(size: int | str, manifest: Mapping[str, Any]) -> int:
    """A fixed size, also of an axis that the variant takes at one size alone; -1 for any other."""
    if isinstance(size, int):
        return size
    axis = manifest["dynamic_axes"].get(size)
    return int(axis["max"]) if axis is not None and axis["min"] == axis["max"] else -1


def _session(session: Mapping[str, Any]) -> Iterator[str]:
    """Session settings that differ from ONNX Runtime's own and that the backend takes."""
    if session["graph_optimization"] in _LEVELS:
        yield f"optimization {{ graph {{ level: {_LEVELS[session['graph_optimization']]} }} }}"
    parameters = {
        "intra_op_thread_count": session["intra_op_threads"],
        "inter_op_thread_count": session["inter_op_threads"],
        "execution_mode": int(session["execution_mode"] == "parallel"),
    }
    given = {key: str(value) for key, value in parameters.items() if value}
    off = {
        "enable_mem_arena": session["cpu_arena"],
        "enable_mem_pattern": session["memory_pattern"],
    }
    given |= {key: "0" for key, is_on in off.items() if not is_on}
    for key, text in given.items():
        yield f'parameters {{ key: "{key}" value: {{ string_value: "{text}" }} }}'


def _package(
    scope: Scope, subject: Subject, bundle: OutputRef, options: TritonOptions
) -> OutputRef:
    step = scope.step(
        package_address(scope, subject, NAME, "package"),
        KIND,
        TritonParams(options, f"{scope.recipe.name}-{bundle_name(subject)}"),
        {"bundle": bundle},
        at=subject.variant.location,
        section="packages",
    )
    return OutputRef(step, "bundle")


KIND = StepKind(
    name="package-triton",
    version=1,
    params=TritonParams,
    inputs=("bundle",),
    outputs={"bundle": "bundle"},
    toolchain=(),
    run=run,
)

FEATURE = PackageFormat(
    name=NAME,
    options=TritonOptions,
    help="`{}` or options: a model repository for NVIDIA's Triton, in VARIANT-triton/",
    kinds=(KIND,),
    package=_package,
)
