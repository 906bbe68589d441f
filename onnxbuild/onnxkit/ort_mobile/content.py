"""Write the contents of a package for phones: model.ort, its needs, sizes, coverage, sources, golden inputs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onnxbuild.core.params import to_json
from onnxbuild.core.target import CPU
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.ahead_of_time.artifact_file import OPERATORS_FILE
from onnxbuild.onnxkit.ahead_of_time.ort_format import required_operators
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, Manifest
from onnxbuild.onnxkit.ort_mobile.coverage import Coverage
from onnxbuild.onnxkit.ort_mobile.languages import LANGUAGES, Language
from onnxbuild.onnxkit.packages.contents import hand_files_on, signature_table, write_rendered
from onnxbuild.onnxkit.packages.golden import GOLDEN, write_plain_points
from onnxbuild.onnxkit.packages.signature import ModelSignature, identifiers, signature_of
from onnxbuild.onnxkit.reports import write_report

SIZES_FILE, COVERAGE_FILE = "sizes.json", "coverage.json"

_ARRAYS = {"FLOAT": "Float", "DOUBLE": "Double", "INT16": "Short", "INT32": "Int", "INT64": "Long"}
"""Type of Kotlin's arrays by ONNX Runtime's name of the element type."""


def write_package(
    folder: Path,
    bundle: Path,
    manifest: Manifest,
    reference: Path,
    tolerances: VariantTolerances,
    *,
    sizes: dict[str, Any],
    coverage: Sequence[Coverage],
) -> tuple[str, ...]:
    """Write all files but SHA256SUMS; return which languages have no source, and why.

    Args:
        bundle: The bundle of the model in ORT format.
        reference: Golden inputs, and what the original gives.
        sizes: From `sizes_of`.
        coverage: From `coverage_of`.
    """
    operators = {each.file for each in manifest.operators or ()}
    names = (manifest.file, OPERATORS_FILE, MANIFEST_FILE, *sorted(operators))
    hand_files_on(bundle, names, folder)
    points = write_plain_points(folder / GOLDEN, reference, tolerances)
    needed = required_operators((bundle / OPERATORS_FILE).read_text(encoding="utf-8"))
    write_report(folder, {**sizes, "kernels": needed}, SIZES_FILE)
    write_report(folder, [to_json(each) for each in coverage], COVERAGE_FILE)
    signature = signature_of(manifest, [each["name"] for each in points])
    content = _content(signature, manifest)
    written = [each for each in LANGUAGES if not each.lacks(signature.ports)]
    room = __package__ or ""
    for language in written:
        layout = {language.file.format(name=content["class_name"]): language.template}
        own = _ports(language, signature, manifest)
        write_rendered(folder, room, layout, **content, **own)
    lacking = tuple(
        f"{each.name}: ONNX Runtime's API there has no {' and no '.join(lacks)}"
        for each in LANGUAGES
        if (lacks := each.lacks(signature.ports))
    )
    about = {
        "files": [(each.name, each.file.format(name=content["class_name"])) for each in written],
        "lacking": lacking,
        "sizes": sizes,
        "kernels": needed,
        "coverage": coverage,
        "platform": (manifest.facts or {}).get("platform", ""),
        "style": (manifest.facts or {}).get("style", ""),
        "members": {each.name: each.ports(signature.ports) for each in written},
    }
    write_rendered(folder, room, {"README.md": "README.md"}, **content, **about)
    return lacking


def _content(signature: ModelSignature, manifest: Manifest) -> dict[str, Any]:
    """Return the values that all templates use."""
    whole = f"{signature.recipe}-{signature.variant}"
    names = {
        style: identifiers([whole], style)[whole].lstrip("_") for style in ("snake", "pascal")
    }
    return {
        "signature": signature,
        "table": signature_table(signature),
        "class_name": names["pascal"]
        if names["pascal"][0].isalpha()
        else f"Model{names['pascal']}",
        "package": names["snake"] if names["snake"][0].isalpha() else f"model{names['snake']}",
        "onnxruntime": manifest.versions["onnxruntime"],
    }


def _ports(language: Language, signature: ModelSignature, manifest: Manifest) -> dict[str, Any]:
    """Return the values that the template of one language uses in addition."""
    inputs, outputs = (language.ports(each) for each in (signature.inputs, signature.outputs))
    sides = {"inputs": signature.inputs, "outputs": signature.outputs}
    config = (manifest.targets or {})[CPU].session.config
    return {
        "inputs": inputs,
        "outputs": outputs,
        "config": [
            (language.quoted(key), language.quoted(str(value))) for key, value in config.items()
        ],
        "labels": {
            language.quoted(name): [language.quoted(each) for each in labels]
            for name, labels in signature.labels.items()
        },
        "arrays": _ARRAYS,
        "kinds": {
            "takes": sorted({each["type"] for each in inputs}),
            "gives": sorted({each["type"] for each in outputs}),
        },
        "has_half": any(each.dtype == "float16" for each in signature.ports),
        "has_text": {
            side: any(each.dtype == "string" for each in ports) for side, ports in sides.items()
        },
        "has_numbers": {
            side: any(each.dtype != "string" for each in ports) for side, ports in sides.items()
        },
    }
