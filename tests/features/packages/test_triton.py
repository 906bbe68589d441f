import hashlib
import json
import subprocess

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from onnxbuild.core.errors import StepError
from onnxbuild.core.host import HostFacts
from onnxbuild.features.packages.triton import KIND, TritonOptions, TritonParams
from onnxbuild.resolver import resolve
from tests.cli.conftest import project  # noqa: F401 - a fixture
from tests.fakes.step_context import run_step
from tests.written_recipes import faults, loader

RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 10}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
quantization: {fp32: none, int8: dynamic}
"""
SESSION = {
    "graph_optimization": "all", "execution_mode": "sequential", "intra_op_threads": 0,
    "inter_op_threads": 0, "memory_pattern": True, "cpu_arena": True, "config": {},
}  # fmt: skip
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
    message("ModelOutput", *value)
    message("Group", ("kind", "Kind", False), ("count", F.TYPE_INT32, False))
    message("Batching", ("max_queue_delay_microseconds", F.TYPE_UINT64, False))
    message("Level", ("level", F.TYPE_INT32, False))
    message("Optimization", ("graph", "Level", False))
    message("Parameter", ("string_value", text, False))
    message("Entry", ("key", text, False), ("value", "Parameter", False))
    message(
        "ModelConfig",
        ("name", text, False), ("backend", text, False), ("default_model_filename", text, False),
        ("max_batch_size", F.TYPE_INT32, False), ("input", "ModelInput", True),
        ("output", "ModelOutput", True), ("instance_group", "Group", True),
        ("dynamic_batching", "Batching", False), ("optimization", "Optimization", False),
        ("parameters", "Entry", True),
    )  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("inference.ModelConfig"))


CONFIG = model_config()


def read(folder):
    return text_format.Parse((folder / "config.pbtxt").read_text(), CONFIG())


def bundle(folder, *, inputs, outputs, axes=None, session=None, weights=False):
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(b"a model")
    if weights:
        (folder / "model.onnx.data").write_bytes(b"weights")
    (folder / "load.py").write_text("")

    def values(given):
        return [{"name": n, "dtype": d, "shape": s} for n, (d, s) in given.items()]

    manifest = {
        "inputs": values(inputs), "outputs": values(outputs),
        "dynamic_axes": {
            name: {"min": low, "max": high, "example": low, "multiple_of": step}
            for name, (low, high, step) in (axes or {}).items()
        },
        "session": {**SESSION, **(session or {})},
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def packaged(folder, *, options=TritonOptions(), **given):  # noqa: B008 - frozen
    source = bundle(folder / "bundle", **given)
    params = TritonParams(options, "demo-fp32")
    outcome, context = run_step(KIND, params, folder / "step", {"bundle": source})
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
        ({"x": ("float32", ["batch", 4])}, {"loss": ("float32", [])}, AXES),
        ({"x": ("float32", ["batch", 4])}, LOGITS, {"batch": (2, 64, 1)}),
        ({"x": ("float32", ["batch", 4])}, LOGITS, {"batch": (1, 64, 1 + 1)}),
        ({"x": ("float32", ["batch", "batch"])}, LOGITS, AXES),
        ({"x": ("float32", ["batch", "past + batch"])}, LOGITS, AXES),
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


def test_sums_and_unknown_sizes_are_dynamic_and_axes_of_one_size_are_not(tmp_path):
    inputs = {"x": ("int64", ["fixed", "past + sequence", "?"])}
    axes = {"fixed": (4, 4, 1), "past": (0, 8, 1), "sequence": (1, 8, 1)}
    _, repository = packaged(tmp_path, inputs=inputs, outputs=LOGITS, axes=axes)
    assert list(read(repository / "demo-fp32").input[0].dims) == [4, -1, -1]


def test_a_scalar_and_one_number_of_each_row_have_dimensions_of_one(tmp_path):
    outputs = {"score": ("float32", ["batch"])}
    _, one = packaged(tmp_path / "one", inputs=IMAGE, outputs=outputs, axes=AXES)
    (score,) = read(one / "demo-fp32").output
    assert list(score.dims) == [1]
    assert score.HasField("reshape")
    assert list(score.reshape.shape) == []
    outputs = {"loss": ("float32", [])}
    _, other = packaged(tmp_path / "other", inputs=IMAGE, outputs=outputs, axes=AXES)
    (loss,) = read(other / "demo-fp32").output
    assert list(loss.dims) == [1]
    assert not loss.HasField("reshape")


@pytest.mark.parametrize(
    ("dtype", "word"),
    [
        ("int64", "INT64"), ("float16", "FP16"), ("float64", "FP64"), ("bool", "BOOL"),
        ("string", "STRING"), ("uint8", "UINT8"), ("bfloat16", "BF16"), ("int32", "INT32"),
    ],
)  # fmt: skip
def test_element_types_have_tritons_names(tmp_path, dtype, word):
    _, repository = packaged(tmp_path, inputs={"x": (dtype, [2])}, outputs={"y": (dtype, [2])})
    config = read(repository / "demo-fp32")
    assert config.input[0].data_type == TYPES.split().index(word)
    assert config.output[0].data_type == TYPES.split().index(word)


def test_names_are_quoted(tmp_path):
    name = 'a "b"\\ é/0'
    _, repository = packaged(tmp_path, inputs={name: ("int64", [2])}, outputs=LOGITS, axes=AXES)
    assert read(repository / "demo-fp32").input[0].name == name


def test_options_and_session_settings_are_written(tmp_path):
    options = TritonOptions(True, 500, 2, "gpu")
    session = {
        "graph_optimization": "extended", "execution_mode": "parallel", "intra_op_threads": 4,
        "inter_op_threads": 2, "cpu_arena": False, "memory_pattern": False,
        "config": {"session.dynamic_block_base": "4"},
    }  # fmt: skip
    outcome, repository = packaged(
        tmp_path, options=options, inputs=IMAGE, outputs=LOGITS, axes=AXES, session=session
    )
    config = read(repository / "demo-fp32")
    (group,) = config.instance_group
    assert (group.count, group.kind) == (2, 1)
    assert config.dynamic_batching.max_queue_delay_microseconds == 500
    assert config.optimization.graph.level == 1
    assert {each.key: each.value.string_value for each in config.parameters} == {
        "intra_op_thread_count": "4", "inter_op_thread_count": "2", "execution_mode": "1",
        "enable_mem_arena": "0", "enable_mem_pattern": "0",
    }  # fmt: skip
    assert outcome.notes == (
        "Triton has no place for session config entries: session.dynamic_block_base",
    )


def test_the_models_files_are_the_bundles_byte_for_byte_with_checksums(tmp_path):
    _, repository = packaged(tmp_path, inputs=IMAGE, outputs=LOGITS, axes=AXES, weights=True)
    files = sorted(
        p.relative_to(repository).as_posix() for p in repository.rglob("*") if p.is_file()
    )
    assert files == [
        "SHA256SUMS", "demo-fp32/1/model.onnx", "demo-fp32/1/model.onnx.data",
        "demo-fp32/config.pbtxt",
    ]  # fmt: skip
    for name in ("model.onnx", "model.onnx.data"):
        packed = (repository / "demo-fp32/1" / name).read_bytes()
        assert packed == (tmp_path / "bundle" / name).read_bytes()
    subprocess.run(["sha256sum", "-c", "SHA256SUMS", "--quiet"], cwd=repository, check=True)


def test_dynamic_batching_without_a_batch_axis_is_refused(tmp_path):
    with pytest.raises(
        StepError, match="no axis is the first of every input and output"
    ) as caught:
        packaged(
            tmp_path,
            options=TritonOptions(dynamic_batching=True),
            inputs=IMAGE,
            outputs={"loss": ("float32", [])},
            axes=AXES,
        )
    assert "remove `dynamic_batching`" in caught.value.fix


@pytest.mark.parametrize(
    ("value", "what"),
    [(("float8e4m3fn", [2]), "no data type for"), (("float32", None), "no known shape")],
)
def test_what_triton_has_no_form_for_is_refused(tmp_path, value, what):
    with pytest.raises(StepError, match=what):
        packaged(tmp_path, inputs={"x": value}, outputs=LOGITS, axes=AXES)


def test_each_variant_asked_for_gets_its_own_repository_judged_by_the_bundles_gates(tmp_path):
    load = loader(tmp_path, before=RECIPE)
    graph = resolve(
        load("packages: {variants: [int8], triton: {instances: 2}}\n").recipes,
        HostFacts("x86_64", frozenset({"avx2"})),
    )
    assert [each.name for each in graph.deliverables] == ["fp32", "int8", "int8-triton"]
    made = graph.steps["demo:int8-triton/package"]
    assert made.params.model == "demo-int8"
    assert made.inputs["bundle"].step == "demo:int8/package"
    assert graph.deliverables[-1].judged_by == graph.deliverables[1].judged_by


def test_a_format_that_is_none_is_named_with_the_nearest(tmp_path):
    load = loader(tmp_path, before=RECIPE)
    ((what, _, fix),) = faults(load, "packages: {tritn: {}}\n")
    assert "did you mean 'triton'?" in what
    assert "triton" in fix


@pytest.mark.slow
def test_a_recipe_lays_out_a_repository_of_its_model(project):  # noqa: F811
    project.edit("tiny.yaml", "benchmark:", "packages: {triton: {}}\nbenchmark:")
    done = project.run("--only", "fp32-triton")
    assert done.code == 0, done.out + done.err
    out = project.folder / "artifacts/out/tiny"
    model = out / "fp32-triton/tiny-fp32"
    config = read(model)
    assert config.max_batch_size == 8
    assert [list(each.dims) for each in (*config.input, *config.output)] == [[4], [2]]
    project.run("--only", "fp32")
    digests = [
        hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (model / "1/model.onnx", out / "fp32/model.onnx")
    ]
    assert digests[0] == digests[1]
