"""Find where code outside of features knows one of them by name.

The resolver, the recipe reader, releases, `diagnose` and the rest walk features and ask them. A literal
that is the name of a feature, a section, a step kind or an artifact kind is a case for one of them, and
so is an import of a step or of what only some features share.

The same holds of execution providers: all code asks `all_providers()` and `named()`.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from onnxbuild.adapters.toolchain.distributions import RUNTIME
from onnxbuild.catalog import CATALOG, SECTIONS, all_features
from onnxbuild.core.target import CPU
from onnxbuild.providers import all_providers

PACKAGE = Path(__file__).parents[1] / "onnxbuild"

OF_FEATURES = (
    "catalog.py",
    "features",
    "steps",
    "onnxkit",
    "expansion",
    "frontend_steps",
    "mode_steps",
    "providers",
)
"""The list of features, features, and what they are made of; a provider has hints for modes by name."""

ASKED = frozenset(
    {
        "addresses", "cells", "diagnosis_hints", "feature", "model_source", "package_format", "plugin",
        "reported", "scope", "variants",
    }
)  # fmt: skip
"""Modules of expansion/ that say how features are asked, or write a variant of any mode; the others hold what some features share."""

WORDS: Mapping[str, str] = {
    "bundle": "what a deliverable is, and what release.json calls it",
    "node": "an operator in a graph; the program that runs JavaScript",
    "none": "the English word",
    "oci": "begins a reference to an OCI layout on disk",
    "onnx": "the format that all variants have, the library, a suffix",
    "package": "a family of deliverables; an installed distribution",
    "packages": "installed distributions",
    "program": "a family of deliverables",
    "provider": "a noun of core: an execution provider",
    "reference": "the input that every gate which compares takes: golden files",
    "release": "the command, its file release.json",
    "report": "what a step says of its outputs; a release shows those that features list",
    "transformers": "the distribution; its module",
    "target": "a noun of core: where a model runs",
}
"""Name -> what else the same word means all over the package."""

PLACES: Mapping[tuple[str, str], str] = {
    ("adapters/toolchain/accelerator.py", "tensorrt"): "where its library is installed",
    ("adapters/toolchain/distributions.py", "xgboost"): "a package that has another name, too",
    (
        "lock/make.py",
        "connections",
    ): "inputs that are outputs of another component: a part of a recipe",
    ("core/entrypoint.py", "pipeline"): "data that a recipe may name in place of a callable",
    ("cli/run.py", "benchmark"): "`--no-bench` is short for one of its settings",
    ("cli/inspect.py", "operators"): "what a model is made of: a key of its summary",
    (
        "core/file_names.py",
        "operators",
    ): "the one folder of a bundle where libraries may be passed on",
    ("adapters/toolchain/environments.py", "wheel"): "a distribution that brings pip's tools",
    ("core/recipe.py", "pytorch"): "the frontend of a recipe that names none",
    ("core/step.py", "ort"): "a suffix of model files",
    ("bench/external_models.py", "ort"): "a suffix of model files",
    ("recipe/schema/explain.py", "dynamic"): "the example in a message",
    ("release/budgets.py", "limits"): "the budgets that a release checks",
    ("release/release.py", "limits"): "the budgets that a release checks",
    ("release_format/bundles.py", "ahead_of_time"): "a key of release.json",
    (
        "expansion/package_format.py",
        "operators",
    ): "formats that take no libraries refuse the section",
    ("recipe/checks/consistency.py", "requested"): "the keys that ask for families",
    ("recipe/checks/remarks.py", "requested"): "the keys that ask for families",
    ("resolver/expand.py", "requested"): "the keys that ask for families",
    ("resolver/select.py", "requested"): "folders are those of families",
    ("resolver/expand.py", "artifacts"): "the key that asks for a family",
    ("resolver/expand.py", "delivery"): "each family is delivered as a bundle",
    ("resolver/expand.py", "sessions"): "a Subject has the session that its features run it in",
    ("verification/allowed.py", "session"): "a key of manifest.json",
    (
        "verification/replay_child.py",
        "validate",
    ): "judges what ONNX Runtime opens, from a manifest",
    ("verification/replay_child.py", "validate_program"): "judges what PyTorch opens, the same",
    ("verification/runtimes.py", "validate"): "judges what ONNX Runtime opens, from a manifest",
    ("verification/runtimes.py", "validate_program"): "judges what PyTorch opens, the same",
}
"""(module, name) -> why it is known there."""


PROVIDER_PLACES: Mapping[tuple[str, str], str] = {
    ("adapters/toolchain/accelerator.py", "cuda"): "where its libraries are installed",
    ("adapters/toolchain/accelerator.py", "tensorrt"): "where its library is installed",
    ("features/artifacts/tensorrt.py", "tensorrt"): "the artifact is engines of TensorRT's own",
    ("features/packages/web.py", "webgpu"): "an interface of browsers, and onnxruntime-web's word",
    (
        "onnxkit/packages/python_packages.py",
        "onnxruntime-gpu",
    ): "one that a recipe may ask for by name",
    ("onnxkit/ahead_of_time/prepared.py", "tensorrt"): "the artifact is engines of TensorRT's own",
    (
        "onnxkit/loaders/onnx_bundle.py",
        "TensorRT",
    ): "in messages of ONNX Runtime; load.py stands alone",
    (
        "onnxkit/ort_mobile/coverage.py",
        "XNNPACK",
    ): "ONNX Runtime's checker has a function for each",
    ("onnxkit/web/content.py", "webgpu"): "an interface of browsers, and onnxruntime-web's word",
    ("steps/tensorrt_engines.py", "tensorrt"): "the step makes engines of TensorRT's own",
}
"""(module, name) -> why an execution provider, or its distribution, is known there. The CPU may be known anywhere."""


def provider_words() -> frozenset[str]:
    """Return the names of all providers and of their distributions, but those of the CPU."""
    return frozenset(
        name
        for each in all_providers()
        if each.name != CPU
        for name in (each.name, each.full_name, each.api_name, each.distribution)
        if name not in ("", RUNTIME)
    )


def known_providers() -> dict[tuple[str, str], int]:
    """Return (module, name) -> its first line there, for every provider that is known outside of providers/."""
    words = provider_words()
    found: dict[tuple[str, str], int] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if place.parts[0] != "providers":
            for line, name in literals(parsed(path), words):
                found.setdefault((place.as_posix(), name), line)
    return found


def names() -> frozenset[str]:
    """Return the names of all features, sections, step kinds and artifact kinds."""
    features = {each.name for each in all_features()}
    artifacts = {kind for each in CATALOG.values() for kind in each.outputs.values()}
    return frozenset({*features, *SECTIONS, *CATALOG, *artifacts})


def known(text: str, of_features: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield (line, name) wherever a module's code knows a feature, or what some of them share.

    Args:
        text: The module's source.
        of_features: The names to look for.
    """
    yield from known_in(ast.parse(text), of_features)


def known_in(tree: ast.AST, of_features: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield them of a module that is parsed already."""
    yield from literals(tree, of_features)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from ((node.lineno, name) for name in _imported(node))
        elif isinstance(node, ast.Import):
            parts = [each.name.split(".") for each in node.names]
            yield from (
                (node.lineno, each[-1]) for each in parts if each[:2] == ["onnxbuild", "steps"]
            )


def literals(tree: ast.AST, wanted: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of each string, no sentence and no docstring, that holds one of these names."""
    docs, constants = set(), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            constants.append(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docs.add(id(node.value))
    for node in constants:
        is_code = isinstance(node.value, str) and id(node) not in docs
        if is_code and not re.search(r"\s", node.value):
            found = wanted.intersection(re.split(r"[:/.]", node.value))
            yield from ((node.lineno, name) for name in sorted(found))


def _imported(node: ast.ImportFrom) -> Iterator[str]:
    package, _, below = str(node.module).partition(".")
    room, _, module = below.partition(".")
    if package == "onnxbuild" and room in ("steps", "features", "mode_steps", "expansion"):
        modules = [module] if module else [each.name for each in node.names]
        yield from (each for each in modules if room != "expansion" or each not in ASKED)


@cache
def parsed(path: Path) -> ast.Module:
    """Parse a file of the package; once for all tests."""
    return ast.parse(path.read_text())


@cache
def all_known() -> dict[tuple[str, str], int]:
    """Return (module, name) -> its first line there, for every name that is known outside of features."""
    of_features = names()
    found: dict[tuple[str, str], int] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if place.parts[0] in OF_FEATURES and not (
            place.parts[0] == "expansion" and path.stem in ASKED
        ):
            continue
        for line, name in known_in(parsed(path), of_features):
            if place.parts[0] == "expansion" and name not in of_features:
                continue  # inside of its room
            found.setdefault((place.as_posix(), name), line)
    return found
