"""Write the contents of a wheel: the bundle, a package around it, golden inputs, metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.params import to_json
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.write import names_below
from onnxbuild.onnxkit.packages.own_test import own_test_files
from onnxbuild.onnxkit.packages.runtimes import runtime_distribution
from onnxbuild.onnxkit.packages.signature import ModelSignature
from onnxbuild.onnxkit.wheels.names import info_folder
from onnxbuild.onnxkit.wheels.python_source import README, python_sources


@dataclass(frozen=True, slots=True)
class WheelNames:
    """Names of a wheel, and its version.

    Attributes:
        distribution: What pip installs.
        package: What Python imports.
        version: Normalized.
        summary: One line.
    """

    distribution: str
    package: str
    version: str
    summary: str


def wheel_files(
    names: WheelNames,
    bundle: Path,
    reference: Path,
    tolerances: VariantTolerances,
    *,
    signature: ModelSignature,
    requirements: Sequence[str],
) -> dict[str, Path | bytes]:
    """Return name in the wheel -> file, or content.

    Args:
        names: The wheel's.
        bundle: The variant's.
        reference: Golden inputs, and what the original gives.
        tolerances: The variant's.
        signature: The bundle's, with the golden points that the wheel holds.
        requirements: Distributions that it needs.
    """
    package, info = names.package, info_folder(names.distribution, names.version)
    files: dict[str, Path | bytes] = {
        f"{package}/{name}": bundle / name for name in names_below(bundle)
    }
    tested = own_test_files(reference, tolerances)
    files |= {f"{package}/{name}": content for name, content in tested.items()}
    sources = python_sources(signature, to_json(names))
    files |= {f"{package}/{name}": text.encode() for name, text in sources.items()}
    files |= {
        f"{package}/py.typed": b"",
        f"{info}/METADATA": _metadata(names, requirements, sources[README]).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: onnxbuild\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/top_level.txt": f"{package}\n".encode(),
    }
    return files


def requirements_of(manifest: Mapping[str, Any], runtime: str) -> tuple[str, ...]:
    """Return the distributions that a bundle needs, as METADATA has them.

    Args:
        manifest: The bundle's.
        runtime: The distribution of ONNX Runtime, as `runtime_distribution` takes it.
    """
    chosen = runtime_distribution((each["name"] for each in manifest["providers"]), runtime)
    return ("numpy", f"{chosen}>={manifest['versions']['onnxruntime']}") if chosen else ("numpy",)


def _metadata(names: WheelNames, requirements: Sequence[str], readme: str) -> str:
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {names.distribution}",
        f"Version: {names.version}",
        f"Summary: {names.summary}",
        "Requires-Python: >=3.9",
        "Description-Content-Type: text/markdown",
        *(f"Requires-Dist: {each}" for each in requirements),
    ]
    return "".join(f"{line}\n" for line in lines) + f"\n{readme}"
