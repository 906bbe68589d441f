"""Manifests: what they say, and what is refused of others' ones."""

import json

import pytest

from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import NotReproducibleError, UsageError
from onnxbuild.onnxkit.oci.manifests import (
    MANIFEST,
    REF_NAME,
    Descriptor,
    media_type_of,
    model_config,
    model_manifest,
)
from onnxbuild.recipe.schema.lean_jsonschema import validators
from onnxbuild.registry.manifest import add_to_index, model_files, read_index, read_manifest

FILES = {"b.onnx": Digest("a" * 64, 5), "a/load.py": Digest("b" * 64, 0)}
CONFIG = model_config({"name": "tiny"}, {"format": "onnx"}, FILES)

ENTRY = Descriptor(MANIFEST, Digest("c" * 64, 3), annotations={REF_NAME: "b"})


def altered(**values):
    value = json.loads(model_manifest(CONFIG, FILES, {}))
    return json.dumps({**value, **values}).encode()


def test_a_manifest_says_what_is_in_the_artifact_in_an_order_of_its_own():
    content = model_manifest(CONFIG, FILES, {"x": "y"})
    assert content == model_manifest(CONFIG, dict(reversed(FILES.items())), {"x": "y"})
    found = read_manifest(content, "here")
    assert model_files(found, "here") == FILES
    assert list(model_files(found, "here")) == ["a/load.py", "b.onnx"]
    assert found.artifact_type == "application/vnd.cncf.model.manifest.v1+json"
    assert found.config.media_type == "application/vnd.cncf.model.config.v1+json"
    assert found.config.digest == Digest.of(CONFIG)


def test_a_config_lists_the_layers_in_the_order_of_the_manifest():
    assert json.loads(CONFIG)["modelfs"] == {
        "type": "layers",
        "diffIds": [f"sha256:{'b' * 64}", f"sha256:{'a' * 64}"],
    }


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("model.onnx", "weight"), ("model.onnx.data", "weight"), ("model.ort", "weight"), ("model.pt2", "weight"),
        ("manifest.json", "weight.config"), ("recipe/bert.yaml", "weight.config"), ("SHA256SUMS", "doc"),
        ("README.md", "doc"), ("LICENSE", "doc"), ("load.py", "code"), ("cpp/CMakeLists.txt", "code"),
        ("golden/inputs-0.npz", "dataset"), ("config.pbtxt", "weight.config"),
    ],
)  # fmt: skip
def test_a_layer_has_the_media_type_of_its_file(path, kind):
    assert media_type_of(path) == f"application/vnd.cncf.model.{kind}.v1.raw"


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b'{"schemaVersion": 2}', b'{"a": 1, "a": 2}', b"[" * 100_000,
        altered(layers={}), altered(layers=[{}]), altered(layers=["x"]), altered(schemaVersion=1),
        altered(layers=[{"digest": "sha256:12", "size": 1}]), altered(layers=[{"digest": f"sha256:{'a' * 64}", "size": -1}]),
        altered(layers=[{"digest": f"sha256:{'a' * 64}", "size": "1"}]), altered(layers=[{"digest": f"md5:{'a' * 64}", "size": 1}]),
        altered(layers=[{"digest": f"sha256:{'a' * 64}", "size": 1e300}]), altered(config=None),
        altered(layers=[{"digest": f"sha256:{'a' * 64}", "size": 1, "annotations": {"x": 1}}]),
        altered(layers=[{"digest": f"sha256:{'a' * 64}", "size": True}]), altered(annotations=[1]),
        altered(layers=[{"digest": f"sha256:{'a' * 64}", "size": 1}] * 10_001), altered(subject="x"), altered(artifactType=[]),
        altered(mediaType="application/vnd.docker.distribution.manifest.v2+json"), add_to_index(None, ENTRY, ""), b"\xff\xfe",
    ],
)  # fmt: skip
def test_what_is_no_manifest_is_refused(content):
    with pytest.raises(NotReproducibleError) as caught:
        read_manifest(content, "here")
    assert str(caught.value).startswith("here: it ")


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"manifests": [1]}', b'{"manifests": [{"digest": "x"}]}']
)
def test_what_is_no_index_is_refused(content):
    with pytest.raises(NotReproducibleError, match="no OCI index"):
        read_index(content, "here")


def test_what_others_have_in_an_index_stays_as_it_is():
    odd = {
        "mediaType": MANIFEST, "digest": f"sha256:{'d' * 64}", "size": 7, "urls": ["https://a.example"],
        "platform": {"os": "linux", "architecture": "arm64", "os.features": ["x"]}, "data": "e30=",
        "annotations": {REF_NAME: "a", "mine": "1"},
    }  # fmt: skip
    replaced = {"mediaType": MANIFEST, "digest": f"sha256:{'e' * 64}", "size": 7, "annotations": {REF_NAME: "b"}}  # fmt: skip
    index = {"schemaVersion": 2, "annotations": {"mine": "1"}, "future": [1.5], "manifests": [odd, replaced]}  # fmt: skip
    found = json.loads(add_to_index(json.dumps(index).encode(), ENTRY, "here"))
    assert found == {**index, "manifests": [odd, ENTRY.to_json()]}
    with pytest.raises(NotReproducibleError, match="no OCI index"):
        add_to_index(json.dumps({**index, "future": float("nan")}).encode(), ENTRY, "here")


@pytest.mark.parametrize(
    ("paths", "sentence"),
    [
        (["a", "a"], "there twice"),
        (["a", "a/b"], "a file and a folder"),
        (["a//b"], "path"),
        (["./a"], "path"),
        (["a\\b"], "path"),
        (["a\x00b"], "path"),
    ],
)
def test_paths_that_no_folder_holds_are_refused(paths, sentence):
    layers = [
        {"mediaType": media_type_of("x"), "digest": f"sha256:{'a' * 64}", "size": 1,
         "annotations": {"org.cncf.model.filepath": path}}
        for path in paths
    ]  # fmt: skip
    with pytest.raises(NotReproducibleError, match=sentence):
        model_files(read_manifest(altered(layers=layers), "here"), "here")


def test_another_kind_of_artifact_is_said():
    image = altered(artifactType="application/vnd.acme.rocket")
    with pytest.raises(UsageError, match=r"its type is 'application/vnd\.acme\.rocket'"):
        model_files(read_manifest(image, "here"), "here")
    packed = [
        {
            "mediaType": "application/vnd.cncf.model.weight.v1.tar",
            "digest": f"sha256:{'a' * 64}",
            "size": 1,
        }
    ]
    with pytest.raises(UsageError, match="pulls raw layers"):
        model_files(read_manifest(altered(layers=packed), "here"), "here")
    with pytest.raises(NotReproducibleError, match="no layers"):
        model_files(read_manifest(altered(layers=[]), "here"), "here")


@pytest.mark.parametrize(
    "technical", [{}, {"format": "onnx", "precision": "int8", "paramSize": "22.7M"}]
)
def test_a_config_keeps_to_what_modelpack_has(technical):
    """Keys and types of modelpack/model-spec's schema/config-schema.json, written down here for this part alone."""
    text = {"type": "string"}
    schema = {
        "type": "object", "additionalProperties": False, "required": ["descriptor", "config", "modelfs"],
        "properties": {
            "descriptor": {"type": "object", "additionalProperties": False,
                           "properties": dict.fromkeys(("name", "title", "version", "revision"), text)},
            "config": {"type": "object", "additionalProperties": False,
                       "properties": dict.fromkeys(("format", "precision", "paramSize"), text)},
            "modelfs": {"type": "object", "additionalProperties": False, "required": ["type", "diffIds"],
                        "properties": {"type": {"enum": ["layers"]}, "diffIds": {"type": "array", "items": text, "minItems": 1}}},
        },
    }  # fmt: skip
    validators.validate(
        json.loads(model_config({"name": "tiny", "title": "tiny:fp32"}, technical, FILES)), schema
    )
