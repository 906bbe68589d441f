"""`packages: {triton: {}}`: in recipes, and what the repository says."""

import json
import subprocess

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import StepError
from onnxbuild.features.packages.triton import FEATURE, PackageTritonParams
from onnxbuild.host.host import HostFacts
from onnxbuild.onnxkit.bundles.manifest import (
    BundleTarget,
    Manifest,
    ManifestProvider,
    Value,
    to_manifest,
)
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.onnxkit.triton.options import InstanceGroup, TritonOptions
from onnxbuild.resolver import resolve
from tests.fakes.step_context import run_step
from tests.written_recipes import faults, loader

HOST = HostFacts("x86_64", frozenset({"avx2"}))


@pytest.mark.parametrize(
    ("inputs", "axis", "why"),
    [
        ("{ids: {dtype: int64, shape: [4], high: 9}}", "", "no axis of dynamic_axes is the first"),
        (
            "{a: {dtype: float32, shape: [batch, batch]}}",
            "min: 1",
            "is also another than the first",
        ),
    ],
)
def test_inputs_that_can_not_be_batched_are_refused_at_lint(tmp_path, inputs, axis, why):
    axes = f"dynamic_axes: {{batch: {{{axis}, max: 8, example: 4}}}}\n" if axis else ""
    head = f"version: 1\nname: demo\nmodel: model.py:load\ndummy_inputs: {inputs}\n{axes}"
    load = loader(tmp_path, before=f"{head}quantization: {{fp32: none}}\n")
    ((what, _, fix),) = faults(load, "packages: {triton: {dynamic_batching: true}}\n")
    assert what.startswith("packages.triton.dynamic_batching asks for batches, and ")
    assert why in what
    assert "give all inputs and outputs one first axis with `min: 1`" in fix


def test_an_ensemble_takes_the_variants_own_model_and_reference(tmp_path):
    head = "version: 1\nname: demo\nmodel: model.py:load\noutputs: [scores]\n"
    head += "dummy_inputs: {image: {dtype: float32, shape: [batch, 3, 8, 8]}}\n"
    head += "dynamic_axes: {batch: {min: 1, max: 8, example: 2}}\nquantization: {int8: dynamic}\n"
    processing = "processing: {postprocess: [{softmax: {}}]}\n"
    load = loader(tmp_path, before=head + processing)
    graph = resolve(load("packages: {triton: {ensemble: true}}\n").recipes, HOST)
    made = graph.steps["demo:int8-pipeline-triton/package"]
    assert made.params.name == "demo-int8-pipeline"
    assert made.inputs["model"].step == graph.steps["demo:int8/package"].inputs["model"].step
    assert made.inputs["reference"].step == "demo:int8-pipeline/reference"
    assert made.inputs["model-reference"].step == "demo:reference"
    assert "model" not in graph.steps["demo:int8-triton/package"].inputs
    ((what, _, _),) = faults(load, "packages: {variants: [int8], triton: {ensemble: true}}\n")
    assert "no pipeline is packaged" in what


F = descriptor_pb2.FieldDescriptorProto
TYPES = "INVALID BOOL UINT8 UINT16 UINT32 UINT64 INT8 INT16 INT32 INT64 FP16 FP32 FP64 STRING BF16"


def model_config():
    """The part of Triton's model_config.proto that is written, as a message class."""
    file = descriptor_pb2.FileDescriptorProto(
        name="model_config.proto", package="inference", syntax="proto3"
    )

    def enum(name, values):
        made = file.enum_type.add(name=name)
        for number, value in enumerate(values):
            made.value.add(name=value, number=number)

    def message(name, *fields):
        made = file.message_type.add(name=name)
        for number, (field, kind, many) in enumerate(fields, 1):
            own = made.field.add(name=field, number=number)
            own.label = F.LABEL_REPEATED if many else F.LABEL_OPTIONAL
            if isinstance(kind, int):
                own.type = kind
            else:
                own.type_name = f".inference.{kind}"
                is_enum = kind in {"DataType", "Kind"}
                own.type = F.TYPE_ENUM if is_enum else F.TYPE_MESSAGE
        return made

    enum("DataType", [f"TYPE_{each}" for each in TYPES.split()])
    enum("Kind", ["KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL"])
    text, number = F.TYPE_STRING, F.TYPE_INT64
    message("Reshape", ("shape", number, True))
    value = (
        ("name", text, False), ("data_type", "DataType", False), ("dims", number, True),
        ("reshape", "Reshape", False),
    )  # fmt: skip
    message("ModelInput", *value)
    message("ModelOutput", *value, ("label_filename", text, False))
    message(
        "Group",
        ("kind", "Kind", False),
        ("count", F.TYPE_INT32, False),
        ("gpus", F.TYPE_INT32, True),
    )
    message(
        "Batching",
        ("max_queue_delay_microseconds", F.TYPE_UINT64, False),
        ("preferred_batch_size", F.TYPE_INT32, True),
    )
    message("Level", ("level", F.TYPE_INT32, False))
    message("Pair", ("key", text, False), ("value", text, False))
    message("Accelerator", ("name", text, False), ("parameters", "Pair", True))
    message(
        "Accelerators",
        ("gpu_execution_accelerator", "Accelerator", True),
        ("cpu_execution_accelerator", "Accelerator", True),
    )
    message(
        "Optimization",
        ("graph", "Level", False), ("execution_accelerators", "Accelerators", False),
    )  # fmt: skip
    message("Parameter", ("string_value", text, False))
    message("Entry", ("key", text, False), ("value", "Parameter", False))
    message(
        "WarmupInput",
        ("data_type", "DataType", False), ("dims", number, True), ("input_data_file", text, False),
    )  # fmt: skip
    message("WarmupEntry", ("key", text, False), ("value", "WarmupInput", False))
    message(
        "Warmup",
        ("name", text, False), ("batch_size", F.TYPE_UINT32, False), ("inputs", "WarmupEntry", True),
    )  # fmt: skip
    message("Latest", ("num_versions", F.TYPE_UINT32, False))
    message("All")
    message("Specific", ("versions", number, True))
    message(
        "Policy",
        ("latest", "Latest", False),
        ("all", "All", False),
        ("specific", "Specific", False),
    )
    message(
        "ModelConfig",
        ("name", text, False), ("backend", text, False), ("default_model_filename", text, False),
        ("max_batch_size", F.TYPE_INT32, False), ("input", "ModelInput", True),
        ("output", "ModelOutput", True), ("instance_group", "Group", True),
        ("dynamic_batching", "Batching", False), ("optimization", "Optimization", False),
        ("parameters", "Entry", True), ("model_warmup", "Warmup", True),
        ("version_policy", "Policy", False),
    )  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("inference.ModelConfig"))


CONFIG = model_config()


def read(folder):
    return text_format.Parse((folder / "config.pbtxt").read_text(), CONFIG())


def bundle(folder, *, inputs, outputs, axes=None, session=None, chain=(), weights=False):
    folder.mkdir(parents=True)
    files = {"model.onnx": b"a model", **({"model.onnx.data": b"weights"} if weights else {})}
    for name, content in files.items():
        (folder / name).write_bytes(content)

    def values(given):
        return tuple(Value(n, d, None if s is None else tuple(s)) for n, (d, s) in given.items())

    links = chain or (ManifestProvider("CPUExecutionProvider", {}),)
    settings = session or SessionSettings()
    manifest = Manifest(
        name="demo",
        kind="onnx",
        file="model.onnx",
        precision="fp32",
        recipe_sha256="0" * 64,
        inputs=values(inputs),
        outputs=values(outputs),
        dynamic_axes={
            name: {"min": low, "max": high, "example": low, "multiple_of": step}
            for name, (low, high, step) in (axes or {}).items()
        },
        validation={},
        versions={},
        files={name: Digest("ab" * 32, len(content)) for name, content in files.items()},
        variant="fp32",
        targets={"first": BundleTarget(tuple(links), settings)},
    )
    (folder / "manifest.json").write_text(json.dumps(to_manifest(manifest)))
    return folder


def reference(folder, feeds):
    folder.mkdir(parents=True)
    writer = ReferenceWriter(folder)
    writer.add(ReferencePoint("example", {}, feeds, {"y": np.zeros(1, np.float32)}))
    writer.finish()
    return folder


def packaged(folder, *, options=TritonOptions(warmup=False), feeds=None, **given):  # noqa: B008 - frozen
    source = bundle(folder / "bundle", **given)
    inputs = {"bundle": source, "reference": reference(folder / "reference", feeds or {})}
    params = PackageTritonParams(options, "demo-fp32", "first")
    outcome, context = run_step(FEATURE.kind, params, folder / "step", inputs)
    return outcome, context.output("bundle")


IMAGE = {"image": ("float32", ["batch", 3, "height", 32])}
LOGITS = {"logits": ("float32", ["batch", 10])}
AXES = {"batch": (1, 64, 1), "height": (8, 512, 8)}


def test_a_shared_first_axis_becomes_tritons_batch(tmp_path):
    outcome, repository = packaged(tmp_path, inputs=IMAGE, outputs=LOGITS, axes=AXES)
    config = read(repository / "demo-fp32")
    assert (config.name, config.backend) == ("demo-fp32", "onnxruntime")
    assert config.default_model_filename == "model.onnx"
    assert config.max_batch_size == outcome.metrics["max_batch_size"] == 64
    (image,), (logits,) = config.input, config.output
    assert (image.name, list(image.dims)) == ("image", [3, -1, 32])
    assert (logits.name, list(logits.dims)) == ("logits", [10])
    assert not config.instance_group
    assert not config.HasField("dynamic_batching")
    assert not config.HasField("optimization")
    assert not config.parameters


@pytest.mark.parametrize(
    ("inputs", "outputs", "axes"),
    [
        ({"x": ("float32", ["batch", 4])}, {"y": ("float32", ["rows", 4])}, AXES),
        ({"x": ("float32", ["batch", 4])}, LOGITS, {"batch": (1, 64, 1 + 1)}),
        ({"x": ("float32", [1, 4])}, {"y": ("float32", [1, 4])}, AXES),
    ],
)
def test_any_other_shape_is_not_batched_and_has_all_its_dimensions(
    tmp_path, inputs, outputs, axes
):
    _, repository = packaged(tmp_path, inputs=inputs, outputs=outputs, axes=axes)
    config = read(repository / "demo-fp32")
    assert config.max_batch_size == 0
    (x,) = config.input
    assert len(x.dims) == 2


@pytest.mark.parametrize(
    ("dtype", "word"),
    [("int64", "INT64"), ("string", "STRING"), ("int32", "INT32")],
)  # fmt: skip
def test_element_types_have_tritons_names(tmp_path, dtype, word):
    _, repository = packaged(tmp_path, inputs={"x": (dtype, [2])}, outputs={"y": (dtype, [2])})
    config = read(repository / "demo-fp32")
    assert config.input[0].data_type == TYPES.split().index(word)
    assert config.output[0].data_type == TYPES.split().index(word)


def test_options_and_session_settings_are_written(tmp_path):
    options = TritonOptions(
        warmup=False, dynamic_batching=True, max_queue_delay_us=500, preferred_batch_sizes=(8, 16),
        instances=2, device="gpu", max_batch_size=16,
    )  # fmt: skip
    session = SessionSettings(
        graph_optimization="extended", execution_mode="parallel", intra_op_threads=4,
        inter_op_threads=2, cpu_arena=False, memory_pattern=False, spinning="never",
        config={
            "session.dynamic_block_base": "4",
            "session.use_device_allocator_for_initializers": "1",
        },
    )  # fmt: skip
    outcome, repository = packaged(
        tmp_path, options=options, inputs=IMAGE, outputs=LOGITS, axes=AXES, session=session
    )
    config = read(repository / "demo-fp32")
    (group,) = config.instance_group
    assert (group.count, group.kind) == (2, 1)
    assert config.max_batch_size == 16
    assert config.dynamic_batching.max_queue_delay_microseconds == 500
    assert list(config.dynamic_batching.preferred_batch_size) == [8, 16]
    assert config.optimization.graph.level == 1
    assert {each.key: each.value.string_value for each in config.parameters} == {
        "intra_op_thread_count": "4", "inter_op_thread_count": "2", "execution_mode": "1",
        "enable_mem_arena": "0", "enable_mem_pattern": "0",
        "session.use_device_allocator_for_initializers": "1",
    }  # fmt: skip
    assert outcome.notes == (
        "Triton has no place for the session settings spinning, session.dynamic_block_base",
    )


@pytest.mark.parametrize(
    ("options", "field"),
    [(TritonOptions(version_policy="all"), "all"), (TritonOptions(latest_versions=2), "latest")],
)
def test_the_version_and_the_policy_are_those_asked_for(tmp_path, options, field):
    _, repository = packaged(
        tmp_path, options=options, feeds=ROWS, inputs=IMAGE, outputs=LOGITS, axes=AXES
    )
    policy = read(repository / "demo-fp32").version_policy
    assert policy.HasField(field)
    assert list(policy.specific.versions) == ([3] if field == "specific" else [])
    assert policy.latest.num_versions == (2 if field == "latest" else 0)
    assert (repository / "demo-fp32" / str(options.version) / "model.onnx").is_file()


def test_the_targets_providers_are_accelerators_on_its_device(tmp_path):
    chain = (
        ManifestProvider("TensorrtExecutionProvider", {"trt_fp16_enable": "1", "device_id": "1"}),
        ManifestProvider("CUDAExecutionProvider", {"cudnn_conv_algo_search": "HEURISTIC"}),
        ManifestProvider("XnnpackExecutionProvider", {}),
        ManifestProvider("CPUExecutionProvider", {}),
    )
    outcome, repository = packaged(tmp_path, inputs=IMAGE, outputs=LOGITS, axes=AXES, chain=chain)
    config = read(repository / "demo-fp32")
    listed = config.optimization.execution_accelerators.gpu_execution_accelerator
    assert [(e.name, {p.key: p.value for p in e.parameters}) for e in listed] == [
        ("tensorrt", {"precision_mode": "FP16"}),
        ("cuda", {"cudnn_conv_algo_search": "HEURISTIC"}),
    ]
    (group,) = config.instance_group
    assert (group.kind, group.count, list(group.gpus)) == (1, 1, [1])
    assert outcome.notes == (
        "Triton's ONNX Runtime backend has no place for the provider xnnpack of target 'first'",
    )


ROWS = {"image": np.arange(2 * 3 * 8 * 32, dtype=np.float32).reshape(2, 3, 8, 32)}


def test_triton_warms_up_with_the_first_row_of_a_golden_input(tmp_path):
    options = TritonOptions(dynamic_batching=True, preferred_batch_sizes=(4,))
    _, repository = packaged(
        tmp_path, options=options, feeds=ROWS, inputs=IMAGE, outputs=LOGITS, axes=AXES
    )
    model = repository / "demo-fp32"
    found = read(model).model_warmup
    assert [(each.name, each.batch_size) for each in found] == [("example-1", 1), ("example-4", 4)]
    (entry,) = found[0].inputs
    assert (entry.key, list(entry.value.dims)) == ("image", [3, 8, 32])
    assert TYPES.split()[entry.value.data_type] == "FP32"
    raw = (model / "warmup" / entry.value.input_data_file).read_bytes()
    assert raw == ROWS["image"][0].astype("<f4").tobytes()


def test_strings_have_their_length_before_them_and_a_model_without_batches_takes_the_whole_point(
    tmp_path,
):
    feeds = {
        "text": np.array(["a", "", "é\0z"]),
        "rate": np.array(16000),
        "half": np.ones(2, np.float32),
    }
    inputs = {"text": ("string", ["n"]), "rate": ("int64", []), "half": ("float16", [2])}
    axes = {"n": (2, 8, 1)}
    options = TritonOptions()
    _, repository = packaged(
        tmp_path, options=options, feeds=feeds, inputs=inputs, outputs=LOGITS, axes=axes
    )
    model = repository / "demo-fp32"
    (sample,) = read(model).model_warmup
    entries = {each.key: each.value for each in sample.inputs}
    assert {name: list(each.dims) for name, each in entries.items()} == {
        "text": [3], "rate": [1], "half": [2],
    }  # fmt: skip
    raw = {n: (model / "warmup" / e.input_data_file).read_bytes() for n, e in entries.items()}
    assert raw == {
        "text": b"\1\0\0\0a\0\0\0\0\4\0\0\0\xc3\xa9\0z",
        "rate": (16000).to_bytes(8, "little"),
        "half": b"\x00\x3c\x00\x3c",
    }


def test_config_pbtxt_has_the_bytes_that_are_recorded_here(tmp_path):
    options = TritonOptions(
        dynamic_batching=True, max_queue_delay_us=500, preferred_batch_sizes=(4, 8), version=3,
        version_policy="specific", instance_groups=(InstanceGroup("gpu", 2, (0, 1)), InstanceGroup("cpu")),
    )  # fmt: skip
    chain = (
        ManifestProvider("TensorrtExecutionProvider", {"trt_fp16_enable": "1"}),
        ManifestProvider("OpenVINOExecutionProvider", {}),
    )
    _, repository = packaged(
        tmp_path,
        options=options,
        feeds={'a "b"\\ é': ROWS["image"]},
        inputs={'a "b"\\ é': IMAGE["image"]},
        outputs={"score": ("float32", ["batch"]), **LOGITS},
        axes=AXES,
        session=SessionSettings(graph_optimization="basic", cpu_arena=False),
        chain=chain,
    )
    found = (repository / "demo-fp32/config.pbtxt").read_text(encoding="utf-8")
    assert found == CONFIG_TEXT


CONFIG_TEXT = r"""name: "demo-fp32"
backend: "onnxruntime"
max_batch_size: 64
input {
  name: "a \"b\"\\ é"
  data_type: TYPE_FP32
  dims: [ 3, -1, 32 ]
}
output {
  name: "score"
  data_type: TYPE_FP32
  dims: [ 1 ]
  reshape {
    shape: [ ]
  }
}
output {
  name: "logits"
  data_type: TYPE_FP32
  dims: [ 10 ]
}
default_model_filename: "model.onnx"
parameters {
  key: "enable_mem_arena"
  value {
    string_value: "0"
  }
}
version_policy {
  specific {
    versions: [ 3 ]
  }
}
instance_group {
  count: 2
  kind: KIND_GPU
  gpus: [ 0, 1 ]
}
instance_group {
  count: 1
  kind: KIND_CPU
}
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 500
}
optimization {
  graph {
    level: -1
  }
  execution_accelerators {
    gpu_execution_accelerator {
      name: "tensorrt"
      parameters {
        key: "precision_mode"
        value: "FP16"
      }
    }
    cpu_execution_accelerator {
      name: "openvino"
    }
  }
}
model_warmup {
  name: "example-1"
  batch_size: 1
  inputs {
    key: "a \"b\"\\ é"
    value {
      data_type: TYPE_FP32
      dims: [ 3, 8, 32 ]
      input_data_file: "example-0"
    }
  }
}
model_warmup {
  name: "example-4"
  batch_size: 4
  inputs {
    key: "a \"b\"\\ é"
    value {
      data_type: TYPE_FP32
      dims: [ 3, 8, 32 ]
      input_data_file: "example-0"
    }
  }
}
model_warmup {
  name: "example-8"
  batch_size: 8
  inputs {
    key: "a \"b\"\\ é"
    value {
      data_type: TYPE_FP32
      dims: [ 3, 8, 32 ]
      input_data_file: "example-0"
    }
  }
}
"""


def test_the_models_files_are_the_bundles_byte_for_byte_with_checksums(tmp_path):
    _, repository = packaged(tmp_path, inputs=IMAGE, outputs=LOGITS, axes=AXES, weights=True)
    files = sorted(
        p.relative_to(repository).as_posix() for p in repository.rglob("*") if p.is_file()
    )
    assert files == [
        "README.md", "SHA256SUMS", "demo-fp32/1/model.onnx", "demo-fp32/1/model.onnx.data",
        "demo-fp32/config.pbtxt",
    ]  # fmt: skip
    for name in ("model.onnx", "model.onnx.data"):
        packed = (repository / "demo-fp32/1" / name).read_bytes()
        assert packed == (tmp_path / "bundle" / name).read_bytes()
    subprocess.run(["sha256sum", "-c", "SHA256SUMS", "--quiet"], cwd=repository, check=True)


@pytest.mark.parametrize(
    ("options", "outputs", "what", "fix"),
    [(
            TritonOptions(dynamic_batching=True), {"loss": ("float32", [])},
            "no axis of dynamic_axes is the first of all inputs and outputs", "remove `dynamic_batching`",
        ), (
            TritonOptions(dynamic_batching=True, preferred_batch_sizes=(4, 16), max_batch_size=8), LOGITS,
            "has 16, and max_batch_size is 8", "write sizes up to 8",
        )],
)  # fmt: skip
def test_batches_that_the_model_does_not_take_are_refused(tmp_path, options, outputs, what, fix):
    with pytest.raises(StepError, match=what) as caught:
        packaged(tmp_path, options=options, feeds=ROWS, inputs=IMAGE, outputs=outputs, axes=AXES)
    assert fix in caught.value.fix
