"""No package says another thing than manifest.json: names, types, axes and labels, read back from every format."""

import importlib
import json
import re
import shutil
import sys

import numpy as np
import onnx
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper

from tests.cli.conftest import Project
from tests.features.packages.test_triton import TYPES, read
from tests.servers import missing

LABELS = ("no", 'a "quoted" $name', "déjà \\u")
RECIPE = """\
version: 1
name: words
model: {onnx: words.onnx}
dynamic_axes:
  batch: {min: 1, max: 8, example: 2}
  sequence: {min: 2, max: 16, example: 4, multiple_of: 2}
quantization: {fp32: none}
processing:
  postprocess: [{softmax: {of: logits}}, {argmax: {}}, {labels: {file: labels.txt}}]
packages:
  variants: [fp32]
  triton: {}
  mlflow: {}
  oci: {}
  web: {}
  wheel: {}
  node: {}
  cpp: {}
  ort-mobile: {}
"""
FORMS = ("triton", "mlflow", "oci", "web", "wheel", "node", "cpp", "ort-mobile")
INPUTS, OUTPUTS = ("input.ids", "weight"), ("logits", "kept")
KOTLIN = {"int64": "LongArray", "float32": "FloatArray"}
SWIFT = {"int64": "Int64", "float32": "Float"}
TYPESCRIPT = {"int64": "BigInt64Array", "float32": "Float32Array"}
CPP = {"int64": "std::int64_t", "float32": "float"}
TRITON = {"int64": "INT64", "float32": "FP32"}

pytestmark = pytest.mark.slow


def model():
    """input.ids [batch, sequence], weight [batch, sequence] -> logits [batch, 3], kept [batch, sequence]."""
    values = [
        helper.make_tensor_value_info("input.ids", TensorProto.INT64, ["batch", "sequence"]),
        helper.make_tensor_value_info("weight", TensorProto.FLOAT, ["batch", "sequence"]),
        helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3]),
        helper.make_tensor_value_info("kept", TensorProto.INT64, ["batch", "sequence"]),
    ]
    constants = [
        numpy_helper.from_array(np.array([1]), "axis"),
        numpy_helper.from_array(np.array([[1, -2, 0.5]], np.float32), "row"),
    ]
    nodes = [
        helper.make_node("Cast", ["input.ids"], ["ids"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["ids", "weight"], ["product"]),
        helper.make_node("ReduceMean", ["product", "axis"], ["mean"], keepdims=1),
        helper.make_node("MatMul", ["mean", "row"], ["logits"]),
        helper.make_node("Identity", ["input.ids"], ["kept"]),
    ]
    graph = helper.make_graph(nodes, "words", values[:2], values[2:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """The bundle, and its packages."""
    if shutil.which("npm") is None:
        missing("npm")
    project = Project(tmp_path_factory.mktemp("signature") / "project", patience_s=600)
    project.write("pyproject.toml", "")
    onnx.save(model(), project.folder / "words.onnx")
    project.write("labels.txt", "".join(f"{each}\n" for each in LABELS))
    project.write("words.yaml", RECIPE)
    only = [word for each in FORMS for word in ("--only", f"fp32-{each}")]
    done = project("run", "words.yaml", *only)
    assert done.code == 0, done.out + done.err
    return project.folder / "artifacts/out/words"


@pytest.fixture(scope="module")
def said(out):
    """What manifest.json says: input and output -> (type, shape), axis -> its sizes, output -> labels."""
    manifest = json.loads((out / "fp32/manifest.json").read_text())
    found = {
        "inputs": {e["name"]: (e["dtype"], tuple(e["shape"])) for e in manifest["inputs"]},
        "outputs": {e["name"]: (e["dtype"], tuple(e["shape"])) for e in manifest["outputs"]},
        "axes": manifest["dynamic_axes"],
        "labels": {e["name"]: tuple(e["labels"]) for e in manifest["outputs"] if "labels" in e},
    }
    assert tuple(found["inputs"]) == INPUTS
    assert tuple(found["outputs"]) == OUTPUTS
    assert found["labels"] == {"logits": LABELS}
    assert found["axes"]["sequence"] == {"min": 2, "max": 16, "example": 4, "multiple_of": 2}
    return found


RULES = {"batch": "1 to 8", "sequence": "a multiple of 2 from 2 to 16"}


def typed(ports, names):
    return {name: (names[dtype], shape) for name, (dtype, shape) in ports.items()}


def shape_of(text):
    """The shape in `[batch, 3]`."""
    return tuple(int(e) if e.isdecimal() else e for e in text.strip("[]").split(", "))


def test_triton(out, said):
    folder = out / "fp32-triton/words-fp32"
    config = read(folder)
    assert config.max_batch_size == said["axes"]["batch"]["max"]
    for side, ports in (("inputs", config.input), ("outputs", config.output)):
        dims = {p.name: (TYPES.split()[p.data_type], tuple(p.dims)) for p in ports}
        wanted = typed(said[side], TRITON)
        assert dims == {
            name: (dtype, tuple(e if isinstance(e, int) else -1 for e in shape[1:]))
            for name, (dtype, shape) in wanted.items()
        }
    named = {each.name: each.label_filename for each in config.output}
    assert named == {"logits": "labels-0.txt", "kept": ""}
    labels = (folder / "labels-0.txt").read_text().splitlines()
    assert {"logits": tuple(labels)} == said["labels"]


def test_mlflow(out, said):
    model = yaml.safe_load((out / "fp32-mlflow/MLmodel").read_text())
    for side in ("inputs", "outputs"):
        listed = json.loads(model["signature"][side])
        found = {
            e["name"]: (e["tensor-spec"]["dtype"], tuple(e["tensor-spec"]["shape"]))
            for e in listed
        }
        assert found == {
            name: (dtype, tuple(e if isinstance(e, int) else -1 for e in shape))
            for name, (dtype, shape) in said[side].items()
        }
    labels = {name: tuple(each) for name, each in model["metadata"]["labels"].items()}
    assert labels == said["labels"]


@pytest.mark.parametrize(
    ("form", "module", "declared"),
    [("node", "index.js", "index.d.ts"), ("web", "model.js", "model.d.ts")],
)
def test_javascript_and_typescript(out, said, form, module, declared):
    text = (out / f"fp32-{form}" / module).read_text()
    (signature,) = re.findall(r"export const signature = frozen\((\{.*?\n\})\);", text, re.DOTALL)
    found = json.loads(signature)
    for side in ("inputs", "outputs"):
        assert {e["name"]: (e["dtype"], tuple(e["shape"])) for e in found[side]} == said[side]
    assert found["axes"] == said["axes"]
    assert {e["name"]: tuple(e["labels"]) for e in found["outputs"] if "labels" in e} == said["labels"]  # fmt: skip
    points = json.loads((out / f"fp32-{form}/golden/points.json").read_text())
    assert found["golden"] == [each["name"] for each in points]
    text = (out / f"fp32-{form}" / declared).read_text()
    for side, kind in (("inputs", r"Value<(\w+), [^>]*>"), ("outputs", r'Tensor<"\w+", (\w+)>')):
        (body,) = re.findall(rf"export interface {side.capitalize()} \{{\n(.*?)\n\}}", text, re.DOTALL)  # fmt: skip
        ports = re.findall(rf'/\*\* (\w+) (\[.*?\]); (.*) \*/\n  ("[^"]+"): {kind};', body)
        given = {json.loads(name): (array, shape_of(shape)) for _, shape, _, name, array in ports}
        assert given == typed(said[side], TYPESCRIPT)
        for _, shape, rules, _, _ in ports:
            symbols = [each for each in shape_of(shape) if isinstance(each, str)]
            assert rules == "; ".join(f"{each}: {RULES[each]}" for each in symbols)
    (labels,) = re.findall(r"export const labels: \{\n(.*?)\n\};", text, re.DOTALL)
    pairs = re.findall(r'readonly ("[^"]+"): readonly (\[.*\]);', labels)
    assert {json.loads(n): tuple(json.loads(e)) for n, e in pairs} == said["labels"]


def test_cpp(out, said):
    (header,) = (out / "fp32-cpp").glob("include/*/model.h")
    text = header.read_text()
    for side in ("inputs", "outputs"):
        (body,) = re.findall(rf"struct {side.capitalize()} \{{\n(.*?)\n\}};", text, re.DOTALL)
        ports = re.findall(r'/// ("[^"]+"): (\w+) (\[.*\])\n  Tensor<([\w:]+)> (\w+);', body)
        assert {json.loads(n): (t, shape_of(s)) for n, _, s, t, _ in ports} == typed(said[side], CPP)  # fmt: skip
        assert [member for *_, member in ports] == [each.replace(".", "_") for each in said[side]]
    assert dict(re.findall(r"^//   (\w+): (.*)$", text, re.MULTILINE)) == RULES
    (names,) = re.findall(r"namespace labels \{\n(.*?)\n\}", text, re.DOTALL)
    ((member, listed),) = re.findall(r"std::vector<std::string> (\w+) = \{(.*)\};", names)
    octal = re.sub(r"\\(\d{3})", lambda m: f"\\u{int(m[1], 8):04x}", listed)
    labels = tuple(each.encode("latin-1").decode() for each in json.loads(f"[{octal}]"))
    assert {member: labels} == said["labels"]


def test_kotlin(out, said):
    text = (out / "fp32-ort-mobile/android/WordsFp32.kt").read_text()
    assert dict(re.findall(r"^ \* Axis (\w+): (.*)\.$", text, re.MULTILINE)) == RULES
    for side in ("inputs", "outputs"):
        (body,) = re.findall(rf"class {side.capitalize()}\(\n(.*?)\n    \)", text, re.DOTALL)
        ports = re.findall(r'/\*\* ("[^"]+"): (\w+) (\[.*\]) \*/\n +val \w+: Tensor<(\w+)>', body)
        assert {json.loads(n): (t, shape_of(s)) for n, _, s, t in ports} == typed(said[side], KOTLIN)  # fmt: skip
    ((name, listed),) = re.findall(r'("[^"]+") to listOf\((.*)\)', text)
    labels = json.loads(f"[{listed}]".replace("\\$", "$"))
    assert {json.loads(name): tuple(labels)} == said["labels"]


def test_swift(out, said):
    text = (out / "fp32-ort-mobile/ios/WordsFp32.swift").read_text()
    assert dict(re.findall(r"^/// Axis (\w+): (.*)\.$", text, re.MULTILINE)) == RULES
    for side in ("inputs", "outputs"):
        (body,) = re.findall(rf"public struct {side.capitalize()} \{{\n(.*?)\n    \}}", text, re.DOTALL)  # fmt: skip
        ports = re.findall(r'/// ("[^"]+"): (\w+) (\[.*\])\n +public \w+ \w+: Tensor<(\w+)>', body)
        assert {json.loads(n): (t, shape_of(s)) for n, _, s, t in ports} == typed(said[side], SWIFT)  # fmt: skip
    (body,) = re.findall(r"static let labels: .* = \[\n(.*?)\n    \]", text, re.DOTALL)
    ((name, listed),) = re.findall(r'("[^"]+"): (\[.*\]),', body)
    plain = re.sub(r"\\u\{(\w+)\}", lambda m: f"\\u{int(m[1], 16):04x}", listed)
    assert {json.loads(name): tuple(json.loads(plain))} == said["labels"]


def test_react_native(out, said):
    text = (out / "fp32-ort-mobile/react-native/WordsFp32.ts").read_text()
    assert dict(re.findall(r"^ \* Axis (\w+): (.*)\.$", text, re.MULTILINE)) == RULES
    for side in ("inputs", "outputs"):
        (body,) = re.findall(rf"export interface {side.capitalize()} \{{\n(.*?)\n\}}", text, re.DOTALL)  # fmt: skip
        ports = re.findall(r'/\*\* ("[^"]+"): (\w+) (\[.*\]) \*/\n +readonly \w+: Values<(\w+)>', body)  # fmt: skip
        assert {json.loads(n): (t, shape_of(s)) for n, _, s, t in ports} == typed(said[side], TYPESCRIPT)  # fmt: skip
    (body,) = re.findall(r"static readonly labels = \{\n(.*?)\n  \} as const;", text, re.DOTALL)
    ((name, listed),) = re.findall(r'("[^"]+"): (\[.*\]),', body)
    assert {json.loads(name): tuple(json.loads(listed))} == said["labels"]


@pytest.fixture(scope="module")
def wheel(out, tmp_path_factory):
    """The package in the wheel, imported."""
    (path,) = (out / "fp32-wheel").glob("*.whl")
    site = tmp_path_factory.mktemp("site")
    shutil.unpack_archive(path, site, "zip")
    sys.path.insert(0, str(site))
    yield importlib.import_module("words_fp32")
    sys.path.remove(str(site))
    for name in [each for each in sys.modules if each.partition(".")[0] == "words_fp32"]:
        del sys.modules[name]


def test_python(out, said, wheel):
    from words_fp32 import model  # type: ignore[import-not-found] # of the wheel

    for side, kind in (("inputs", wheel.Inputs), ("outputs", wheel.Outputs)):
        found = {name: each.__forward_arg__ for name, each in kind.__annotations__.items()}
        more = " | list[Any]" if side == "inputs" else ""
        assert found == {
            name: f"npt.NDArray[np.{dtype}]{more}" for name, (dtype, _) in said[side].items()
        }
    assert {e["name"]: (e["dtype"], e["shape"]) for e in model._INPUTS} == said["inputs"]
    assert tuple(model._OUTPUTS) == tuple(said["outputs"])
    assert said["axes"] == wheel.AXES
    assert said["labels"] == wheel.LABELS
    points = json.loads((model_folder(wheel) / "golden/points.json").read_text())
    assert tuple(each["name"] for each in points) == wheel.GOLDEN


def model_folder(package):
    return importlib.resources.files(package)


def test_every_readme_has_the_same_table(out, said):
    forms = [
        each for each in FORMS if each not in ("oci", "wheel")
    ]  # files of the bundle; its own
    texts = {each: (out / f"fp32-{each}/README.md").read_text() for each in forms}
    (path,) = (out / "fp32-wheel").glob("*.whl")
    site = out.parent / "readme"
    shutil.unpack_archive(path, site, "zip")
    texts["wheel"] = (site / "words_fp32/README.md").read_text()
    (metadata,) = site.glob("*.dist-info/METADATA")
    assert metadata.read_text().endswith(texts["wheel"])
    table = (
        "| | name | type | shape | classes |\n"
        "|---|---|---|---|---|\n"
        "| input | `input.ids` | int64 | `[batch, sequence]` |  |\n"
        "| input | `weight` | float32 | `[batch, sequence]` |  |\n"
        f"| output | `logits` | float32 | `[batch, 3]` | 3: {', '.join(LABELS)} |\n"
        "| output | `kept` | int64 | `[batch, sequence]` |  |\n"
        "\n"
        "| axis | sizes |\n"
        "|---|---|\n"
        "| `batch` | 1 to 8 |\n"
        "| `sequence` | a multiple of 2 from 2 to 16 |\n"
    )
    for form, text in texts.items():
        assert table in text, form
        assert "Golden inputs: `example`, " in text or form in ("triton", "mlflow"), form
