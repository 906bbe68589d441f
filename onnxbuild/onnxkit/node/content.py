"""Contents of a Node package: names, the model, modules and types, session options, golden inputs, a test by them.

Sources: npm's documentation of package.json (`name`, `version`), Semantic Versioning 2.0.0; ONNX Runtime 1.30,
js/node/src/session_options_helper.cc.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from onnxbuild.core.params import to_json
from onnxbuild.host.cpu import VNNI
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import (
    MANIFEST_FILE,
    SUMS_FILE,
    BundleTarget,
    Manifest,
    ManifestProvider,
)
from onnxbuild.onnxkit.packages.contents import (
    hand_model_on,
    signature_table,
    write_rendered,
    write_text,
)
from onnxbuild.onnxkit.packages.golden import GOLDEN, write_plain_points
from onnxbuild.onnxkit.packages.signature import ModelSignature
from onnxbuild.onnxkit.packages.typescript import (
    constant_in,
    example_call,
    javascript_signature,
    shared_javascript,
    typed_port,
)
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.providers import named

VARIANT = "{variant}"
"""Stands for the variant's name in that of a package."""

_PART = r"[a-z0-9][a-z0-9._~-]*"
_NAME = re.compile(rf"(?:@{_PART}/)?{_PART}")
_MOST = 214
_NUMBER = r"(?:0|[1-9]\d*)"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(?:-(?:{_NUMBER}|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:{_NUMBER}|\d*[A-Za-z-][0-9A-Za-z-]*))*)?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_TAKEN = frozenset({"node_modules", "favicon.ico", "node", "fs", "path", "http", "https", "os", "util", "test"})  # fmt: skip
"""Names that npm refuses, and those of Node's own modules that are likely ones of models."""


def is_name(text: str) -> bool:
    """Return whether an npm package may have this name."""
    return len(text) <= _MOST and text not in _TAKEN and _NAME.fullmatch(text) is not None


def is_version(text: str) -> bool:
    """Return whether this is a version by Semantic Versioning, as npm wants it."""
    return _VERSION.fullmatch(text) is not None


def package_name(recipe: str, bundle: str, pattern: str) -> str:
    """Return a package's name, in lower case, with `-` for what npm does not take: `pattern`, else RECIPE-BUNDLE."""
    if pattern:
        return pattern.replace(VARIANT, mapped(bundle))
    return mapped(f"{recipe}-{bundle}")


def mapped(text: str) -> str:
    """Return text as a part of a name."""
    found = re.sub(r"[^a-z0-9._~-]+", "-", text.lower()).strip("-._~")[:_MOST]
    return f"model-{found}" if not found or found in _TAKEN else found


_LEVELS = {"disable": "disabled"}
_SPINNING = {
    "allow": {},
    "stop": {"session.force_spinning_stop": "1"},
    "never": {"session.intra_op.allow_spinning": "0", "session.inter_op.allow_spinning": "0"},
}


@dataclass(frozen=True, slots=True)
class NodeSessions:
    """Session options of a package for each target.

    Attributes:
        targets: Target -> `providers` and `session`, as onnxruntime-node takes them.
        chain: `target` and `provider` of each, in order of preference; empty if it has none of them.
        notes: What it has no place for, a sentence each without a full stop.
    """

    targets: dict[str, Any]
    chain: list[dict[str, Any]]
    notes: tuple[str, ...]


def node_sessions(manifest: Manifest) -> NodeSessions:
    """Return how onnxruntime-node opens a bundle's model."""
    targets: dict[str, Any] = {}
    notes: dict[str, None] = {}
    for name, target in (manifest.targets or {}).items():
        providers = [_provider(each) for each in target.chain if _is_known(each)]
        notes |= dict.fromkeys(_lacks(name, target))
        if providers:
            targets[name] = {"providers": providers, "session": _session(target.session)}
    chain = [
        {"target": each.target, "provider": _provider(each)}
        for each in manifest.providers or ()
        if _is_known(each) and each.target in targets
    ]
    return NodeSessions(targets, chain, tuple(notes))


def _is_known(provider: ManifestProvider) -> bool:
    return bool(named(provider.name).node_name)


def _provider(provider: ManifestProvider) -> dict[str, Any]:
    known = named(provider.name).node_options
    options = {
        known[key]: _value(known[key], text)
        for key, text in provider.options.items()
        if key in known
    }
    return {"name": named(provider.name).node_name, **options}


def _value(key: str, text: str) -> str | int | bool:
    if key == "deviceId":
        return int(text)
    return text == "1" if key == "enableFp16Precision" else text


def _session(settings: SessionSettings) -> dict[str, Any]:
    """Options that differ from ONNX Runtime's own, and the level of optimization."""
    own: dict[str, Any] = {
        "graphOptimizationLevel": _LEVELS.get(
            settings.graph_optimization, settings.graph_optimization
        )
    }
    if settings.execution_mode == "parallel":
        own["executionMode"] = "parallel"
    if settings.intra_op_threads:
        own["intraOpNumThreads"] = settings.intra_op_threads
    if settings.inter_op_threads:
        own["interOpNumThreads"] = settings.inter_op_threads
    if not settings.cpu_arena:
        own["enableCpuMemArena"] = False
    if not settings.memory_pattern:
        own["enableMemPattern"] = False
    entries = {**_SPINNING[settings.spinning], **settings.config}
    if entries:
        own["extra"] = {key: str(value) for key, value in sorted(entries.items())}
    return own


def _lacks(name: str, target: BundleTarget) -> Iterator[str]:
    for provider in target.chain:
        if not _is_known(provider):
            yield f"onnxruntime-node has no {provider.name}, which target '{name}' names"
            continue
        dropped = sorted(provider.options.keys() - named(provider.name).node_options.keys())
        if dropped:
            yield f"onnxruntime-node takes no {', '.join(dropped)} of {provider.name}"
    if target.library is not None:
        yield f"onnxruntime-node loads no plug-in library, and target '{name}' has one"
    if target.session.deterministic_compute:
        yield "onnxruntime-node has no option for deterministic_compute"
    if target.session.free_dimensions:
        fixed = ", ".join(
            f"{axis} = {size}" for axis, size in sorted(target.session.free_dimensions.items())
        )
        yield (
            f"onnxruntime-node fixes no axes ({fixed}): inputs are still held to them, and the session may run slower"
        )


OLDEST_NODE = 18
TEST_FILE = "test.js"
_MODULES = ("index.js", "tensors.js", "index.d.ts")
_TESTS = (TEST_FILE, "judge.js", GOLDEN)
_SHARED = ("tensors.js", "judge.js")
_TEMPLATES = ("index.js", "index.d.ts", "README.md")


@dataclass(frozen=True, slots=True)
class NodeNames:
    """Names and version of an npm package, and the runtime that it needs.

    Attributes:
        package: Name that npm installs and code imports.
        version: By Semantic Versioning.
        summary: One line.
        runtime: Version of onnxruntime-node.
    """

    package: str
    version: str
    summary: str
    runtime: str


def write_node_package(
    folder: Path,
    bundle: Path,
    reference: Path,
    names: NodeNames,
    tolerances: VariantTolerances,
    *,
    manifest: Manifest,
    signature: ModelSignature,
    sessions: NodeSessions,
) -> int:
    """Write all files but SHA256SUMS; return the number of golden points."""
    models = hand_model_on(bundle, manifest, folder)
    dtypes = {port.name: port.dtype for port in signature.inputs}
    points = write_plain_points(folder / GOLDEN, reference, tolerances, dtypes=dtypes)
    signature = replace(signature, golden=tuple(each["name"] for each in points))
    for name in _SHARED:
        write_text(folder / name, shared_javascript(name))
    room = __package__ or ""
    own = resources.files(room).joinpath("static", TEST_FILE)
    write_text(folder / TEST_FILE, own.read_text(encoding="utf-8"))
    layout = {name: name for name in _TEMPLATES}
    write_rendered(folder, room, layout, **_content(names, manifest, signature, sessions))
    write_text(folder / "package.json", _package_json(names, manifest, models))
    return len(points)


def opened_file(folder: Path) -> str:
    """Return the file that index.js opens as the model.

    Raises:
        ValueError: It does not say so as this version writes it.
    """
    return str(constant_in(folder / "index.js", "MODEL_FILE"))


def archive_name(names: NodeNames) -> str:
    """Return the file that `npm pack` writes."""
    return f"{names.package.removeprefix('@').replace('/', '-')}-{names.version}.tgz"


def _content(
    names: NodeNames, manifest: Manifest, signature: ModelSignature, sessions: NodeSessions
) -> dict[str, object]:
    chain = [each["provider"]["name"] for each in sessions.chain]
    return {
        **to_json(names),
        "title": names.summary,
        "file": manifest.file,
        "inputs": [typed_port(port, signature) for port in signature.inputs],
        "outputs": [typed_port(port, signature) for port in signature.outputs],
        "labels": signature.labels,
        "table": signature_table(signature),
        "has_half": any(port.dtype == "float16" for port in signature.ports),
        "signature": javascript_signature(signature),
        "targets": json.dumps(sessions.targets, indent=2),
        "target_names": ", ".join(f"`{name}`" for name in sessions.targets),
        "target_type": " | ".join(json.dumps(name) for name in sessions.targets),
        "chain": json.dumps(sessions.chain),
        "runs_on": f"on the first of {', '.join(chain)} that is there and loads"
        if len(chain) > 1
        else f"on {chain[0]}",
        "archive": archive_name(names),
        "vnni": json.dumps(sorted(VNNI)) if manifest.sums_may_saturate else "",
        "example": example_call(signature),
        "node": OLDEST_NODE,
        "notes": sessions.notes,
    }


def _package_json(names: NodeNames, manifest: Manifest, models: list[str]) -> str:
    files = [*_MODULES, *_TESTS, *models, MANIFEST_FILE, SUMS_FILE]
    said = {
        "name": names.package,
        "version": names.version,
        "description": names.summary,
        "type": "module",
        "exports": {
            ".": {"types": "./index.d.ts", "default": "./index.js"},
            f"./{MANIFEST_FILE}": f"./{MANIFEST_FILE}",
            "./package.json": "./package.json",
        },
        "types": "./index.d.ts",
        "files": files,
        "scripts": {"test": f"node {TEST_FILE}"},
        "engines": {"node": f">={OLDEST_NODE}"},
        "dependencies": {"onnxruntime-node": names.runtime},
        "onnxbuild": {"recipe": manifest.name, "variant": manifest.variant},
    }
    return json.dumps(said, indent=2, ensure_ascii=False) + "\n"
