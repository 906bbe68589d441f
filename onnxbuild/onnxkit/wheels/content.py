"""Contents of a wheel: names, the bundle, a package around it, golden inputs, metadata.

Sources: the Python packaging specifications "Names and normalization", "Binary distribution format" and
"Version specifiers".
"""

import json
import keyword
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.params import to_json
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.onnxkit.bundles.write import names_below
from onnxbuild.onnxkit.loaders import checked_inputs
from onnxbuild.onnxkit.packages.contents import python_literal, rendered, signature_table
from onnxbuild.onnxkit.packages.python_packages import python_test_files, runtime_distribution
from onnxbuild.onnxkit.packages.signature import ModelSignature, Port
from onnxbuild.providers import all_providers

VARIANT = "{variant}"
"""Stands for the variant's name in that of a distribution."""

_README = "README.md"
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def is_name(text: str) -> bool:
    """Return whether a distribution may have this name."""
    return _NAME.fullmatch(text) is not None


def distribution_name(recipe: str, variant: str, pattern: str) -> str:
    """Return a wheel's name: the recipe's `pattern`; `RECIPE-VARIANT` where that is empty."""
    name = pattern.replace(VARIANT, variant) or f"{recipe}-{variant}"
    return re.sub(r"[^A-Za-z0-9._-]", "-", name).strip("-._")


def import_name(distribution: str) -> str:
    """Return the package that a distribution of this name is imported as.

    It is the normalized name with underscores; `model_` goes before what begins with a digit, and an
    underscore after a word of Python.
    """
    name = re.sub(r"[-_.]+", "_", distribution).lower()
    if name[0].isdigit():
        return f"model_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def taken_by(distribution: str) -> str:
    """Return what an installed wheel of this name would hide or replace; empty if nothing."""
    name = import_name(distribution)
    if name in sys.stdlib_module_names:
        return f"Python's own module {name}"
    required = {"numpy", "onnxruntime"} | {each.distribution for each in all_providers()}
    hidden = next((each for each in sorted(required) if each and import_name(each) == name), "")
    return f"{hidden}, which wheels require" if hidden else ""


def wheel_file(distribution: str, version: str) -> str:
    """Return a wheel's file name, of a normalized version."""
    return f"{_escaped(distribution)}-{version}-py3-none-any.whl"


def info_folder(distribution: str, version: str) -> str:
    """Return the folder of a wheel's metadata."""
    return f"{_escaped(distribution)}-{version}.dist-info"


def _escaped(distribution: str) -> str:
    return re.sub(r"[-_.]+", "_", distribution).lower()


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
    """Return name in the wheel -> file, or content."""
    package, info = names.package, info_folder(names.distribution, names.version)
    files: dict[str, Path | bytes] = {
        f"{package}/{name}": bundle / name for name in names_below(bundle)
    }
    tested = python_test_files(reference, tolerances)
    files |= {f"{package}/{name}": content for name, content in tested.items()}
    sources = _python_sources(signature, to_json(names))
    files |= {f"{package}/{name}": text.encode() for name, text in sources.items()}
    files |= {
        f"{package}/py.typed": b"",
        f"{info}/METADATA": _metadata(names, requirements, sources[_README]).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: onnxbuild\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/top_level.txt": f"{package}\n".encode(),
    }
    return files


def requirements_of(manifest: Manifest, runtime: str) -> tuple[str, ...]:
    """Return the distributions that a bundle needs, as METADATA has them; `runtime` is a RuntimeChoice."""
    chosen = runtime_distribution((each.name for each in manifest.providers or ()), runtime)
    return ("numpy", f"{chosen}>={manifest.versions['onnxruntime']}") if chosen else ("numpy",)


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


_SCALARS = {"bool": "np.bool_", "string": "np.object_"}
_TEXTS = "npt.NDArray[np.object_] | npt.NDArray[np.str_] | list[Any]"


def _python_sources(signature: ModelSignature, names: dict[str, Any]) -> dict[str, str]:
    """Return file name -> text: `__init__.py`, `model.py`, `inputs.py`, `README.md`."""
    content = {
        **names,
        "inputs": [_port(port, signature) for port in signature.inputs],
        "outputs": [_port(port, signature) for port in signature.outputs],
        "axes": signature.axes,
        "labels": signature.labels,
        "golden": signature.golden,
        "example": example_call(signature),
        "table": signature_table(signature),
    }
    room = __package__ or ""
    made = {
        name: rendered(room, f"{name}.j2", **content)
        for name in ("__init__.py", "model.py", _README)
    }
    checks = Path(str(checked_inputs.__file__)).read_text(encoding="utf-8")
    return {**made, "inputs.py": checks}


def example_call(signature: ModelSignature) -> str:
    """Return an argument of `run` with arrays at the example sizes."""
    fields = []
    for port in signature.inputs:
        shape = repr(port.example_shape or ())
        made = (
            f'np.full({shape}, "text", object)'
            if port.dtype == "string"
            else f"np.zeros({shape}, {json.dumps(port.dtype)})"
        )
        fields.append(f"{python_literal(port.name)}: {made}")
    return f"{{{', '.join(fields)}}}"


def _port(port: Port, signature: ModelSignature) -> dict[str, Any]:
    array = f"npt.NDArray[{_SCALARS.get(port.dtype, f'np.{port.dtype}')}]"
    symbols = dict.fromkeys(str(size) for size in port.shape or () if not isinstance(size, int))
    rules = [f"; {name}: {axis.rule}" for name in symbols if (axis := signature.axis(name))]
    return {
        "name": port.name,
        "dtype": port.dtype,
        "shape": port.shape,
        "about": " ".join(f"{port.dtype} {port.shape_text}{''.join(rules)}".split()),
        "takes": _TEXTS if port.dtype == "string" else f"{array} | list[Any]",
        "gives": array,
    }
