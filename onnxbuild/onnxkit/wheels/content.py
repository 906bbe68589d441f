"""What a wheel holds: the bundle, a package around it, golden inputs, metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.params import to_json
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.write import names_below
from onnxbuild.onnxkit.packages.own_test import own_test_files
from onnxbuild.onnxkit.wheels.names import info_folder
from onnxbuild.providers import named

_INIT = '''\
"""{summary}

    from {package} import load
    session = load()          # an onnxruntime.InferenceSession
    outputs = session.run(None, {{...}})

`python -m {package}` runs golden inputs through the model and compares its outputs.
"""

from {package}.load import LoadError, load

__all__ = ["LoadError", "load"]
__version__ = "{version}"
'''


@dataclass(frozen=True, slots=True)
class WheelNames:
    """What a wheel is called.

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
    requirements: Sequence[str],
    bundle: Path,
    reference: Path,
    tolerances: VariantTolerances,
) -> dict[str, Path | bytes]:
    """Return name in the wheel -> file, or content.

    Args:
        names: The wheel's.
        requirements: Distributions that it needs.
        bundle: The variant's.
        reference: Golden inputs, and what the original gives.
        tolerances: The variant's.
    """
    package, info = names.package, info_folder(names.distribution, names.version)
    files: dict[str, Path | bytes] = {
        f"{package}/{name}": bundle / name for name in names_below(bundle)
    }
    tested = own_test_files(reference, tolerances)
    files |= {f"{package}/{name}": content for name, content in tested.items()}
    files |= {
        f"{package}/__init__.py": _INIT.format(**to_json(names)).encode(),
        f"{package}/py.typed": b"",
        f"{info}/METADATA": _metadata(names, requirements).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: onnxbuild\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/top_level.txt": f"{package}\n".encode(),
    }
    return files


def requirements_of(manifest: Mapping[str, Any], runtime: str) -> tuple[str, ...]:
    """Return the distributions that a bundle needs, as METADATA has them.

    Args:
        manifest: The bundle's.
        runtime: The distribution of ONNX Runtime; `auto` for that of the first provider that has one,
            `none` to require none: two of them in one environment overwrite each other's files.
    """
    if runtime == "none":
        return ("numpy",)
    brought = [named(each["name"]).distribution for each in manifest["providers"]]
    chosen = next(filter(None, brought), "onnxruntime") if runtime == "auto" else runtime
    return ("numpy", f"{chosen}>={manifest['versions']['onnxruntime']}")


def _metadata(names: WheelNames, requirements: Sequence[str]) -> str:
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {names.distribution}",
        f"Version: {names.version}",
        f"Summary: {names.summary}",
        "Requires-Python: >=3.9",
        *(f"Requires-Dist: {each}" for each in requirements),
    ]
    return "".join(f"{line}\n" for line in lines)
