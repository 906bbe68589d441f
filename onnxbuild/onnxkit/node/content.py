"""Write the contents of a Node package: the model, modules and types, golden inputs, a test by them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from onnxbuild.core.params import to_json
from onnxbuild.host.cpu import VNNI
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, SUMS_FILE, Manifest
from onnxbuild.onnxkit.bundles.write import write_sums
from onnxbuild.onnxkit.model.model_files import WEIGHTS_FILE, hand_on
from onnxbuild.onnxkit.node.sessions import NodeSessions
from onnxbuild.onnxkit.packages.golden import GOLDEN, write_plain_points
from onnxbuild.onnxkit.packages.signature import ModelSignature
from onnxbuild.onnxkit.packages.tables import signature_table
from onnxbuild.onnxkit.packages.templates import rendered
from onnxbuild.onnxkit.packages.typescript import (
    constant_in,
    example_call,
    javascript_signature,
    shared_javascript,
    typed_port,
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
    about: tuple[Manifest, ModelSignature, NodeSessions],
) -> list[str]:
    """Write a package; the same inputs give the same bytes. Return the names of its files.

    Args:
        folder: An empty one.
        bundle: What is packaged.
        reference: Golden inputs, and what the original gives.
        names: The package's.
        tolerances: The bundle's.
        about: The bundle's manifest, what it says of inputs and outputs, and of sessions.
    """
    manifest, signature, sessions = about
    models = [each for each in (manifest.file, WEIGHTS_FILE) if (bundle / each).exists()]
    for name in (*models, MANIFEST_FILE):
        hand_on(bundle / name, folder / name)
    dtypes = {port.name: port.dtype for port in signature.inputs}
    points = write_plain_points(folder / GOLDEN, reference, tolerances, dtypes=dtypes)
    signature = replace(signature, golden=tuple(each["name"] for each in points))
    for name in _SHARED:
        _write(folder / name, shared_javascript(name))
    own = resources.files(__package__ or "").joinpath("static", TEST_FILE)
    _write(folder / TEST_FILE, own.read_text(encoding="utf-8"))
    content = _content(names, manifest, signature, sessions)
    for name in _TEMPLATES:
        _write(folder / name, rendered(__package__ or "", f"{name}.j2", **content))
    _write(folder / "package.json", _package_json(names, manifest, models))
    return write_sums(folder)


def opened_file(folder: Path) -> str:
    """Return the file that index.js opens as the model.

    Args:
        folder: A package.

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


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
