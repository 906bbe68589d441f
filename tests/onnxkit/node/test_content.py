"""Names of npm packages, and how onnxruntime-node opens a model."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from onnxbuild.core.environment import Environment
from onnxbuild.features.packages import node
from onnxbuild.onnxkit.bundles.manifest import BundleTarget, ManifestProvider
from onnxbuild.onnxkit.node.content import is_name, is_version, node_sessions, package_name
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.own_folder import OWN_FOLDER


@pytest.mark.parametrize(
    ("recipe", "bundle", "pattern", "name"),
    [
        ("digits", "int8", "", "digits-int8"),
        ("digits", "int8-pipeline", "@me/digits-{variant}", "@me/digits-int8-pipeline"),
        ("été", "1", "", "t--1"),
    ],
)
def test_what_npm_does_not_take_is_mapped(recipe, bundle, pattern, name):
    assert package_name(recipe, bundle, pattern) == name
    assert is_name(name)


@pytest.mark.parametrize("name", ["", ".a", "a/b", "a" * 215])
def test_names_that_npm_refuses_are_none(name):
    assert not is_name(name)


@pytest.mark.parametrize(
    ("version", "is_one"),
    [("1.2.0", True), ("1.2", False), ("1.2.0-01", False), ("1.2.0\n", False)],
)
def test_versions_are_those_of_semantic_versioning(version, is_one):
    assert is_version(version) is is_one


CPU = ManifestProvider("CPUExecutionProvider", {})
CUDA = ManifestProvider(
    "CUDAExecutionProvider", {"device_id": "1", "cudnn_conv_algo_search": "HEURISTIC"}
)
DEFAULT = SessionSettings()
OPENVINO = ManifestProvider("OpenVINOExecutionProvider", {})


def manifest(chains, settings=DEFAULT):
    targets = {name: BundleTarget(chain, settings) for name, chain in chains.items()}
    providers = tuple(
        replace(each, target=name) for name, chain in chains.items() for each in chain[:1]
    )
    return SimpleNamespace(targets=targets, providers=providers)


def test_providers_have_its_names_and_those_that_it_lacks_are_noted():
    found = node_sessions(manifest({"gpu": (CUDA, CPU), "npu": (OPENVINO,), "cpu": (CPU,)}))
    assert found.chain == [
        {"target": "gpu", "provider": {"name": "cuda", "deviceId": 1}},
        {"target": "cpu", "provider": {"name": "cpu"}},
    ]
    assert [each["name"] for each in found.targets["gpu"]["providers"]] == ["cuda", "cpu"]
    assert found.notes == (
        "onnxruntime-node takes no cudnn_conv_algo_search of CUDAExecutionProvider",
        "onnxruntime-node has no OpenVINOExecutionProvider, which target 'npu' names",
    )
    assert node_sessions(manifest({"npu": (OPENVINO,)})).chain == []


def test_session_settings_are_handed_on_and_those_that_have_no_place_are_noted():
    settings = SessionSettings(
        graph_optimization="disable",
        execution_mode="parallel",
        intra_op_threads=2,
        inter_op_threads=3,
        spinning="never",
        memory_pattern=False,
        cpu_arena=False,
        deterministic_compute=True,
        free_dimensions={"batch": 1},
        config={"session.disable_prepacking": 1},
    )
    found = node_sessions(manifest({"cpu": (CPU,)}, settings))
    assert found.targets["cpu"]["session"] == {
        "graphOptimizationLevel": "disabled",
        "executionMode": "parallel",
        "intraOpNumThreads": 2,
        "interOpNumThreads": 3,
        "enableCpuMemArena": False,
        "enableMemPattern": False,
        "extra": {
            "session.disable_prepacking": "1",
            "session.inter_op.allow_spinning": "0",
            "session.intra_op.allow_spinning": "0",
        },
    }
    assert len(found.notes) == 2
    assert node_sessions(manifest({"cpu": (CPU,)})).targets["cpu"]["session"] == {
        "graphOptimizationLevel": "all"
    }


def test_packages_require_the_version_that_the_list_has():
    (runtime,) = (each for each in vars(node).values() if isinstance(each, Environment))
    listed = Path(OWN_FOLDER, runtime.npm.partition("/")[2]).read_text()
    entry = json.loads(listed)["packages"]["node_modules/onnxruntime-node"]
    assert entry["version"] == node.ONNXRUNTIME_NODE
