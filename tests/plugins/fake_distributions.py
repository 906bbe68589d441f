"""Distributions on disk, as an installer leaves them, and projects with plug-ins of their own."""

from pathlib import Path

KIND = '''
from dataclasses import dataclass
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Variant
from onnxbuild.core.step import Outcome, StepKind
from onnxbuild.expansion.feature import Feature, Mode, Section
from onnxbuild.expansion.package_format import PackageFormat
from onnxbuild.core.provider import Provider
from onnxbuild.core.provider import ProviderOption


@dataclass(frozen=True)
class Params:
    """Nothing to choose."""


def run(context):
    (context.output("made") / "made.txt").write_text("made")
    return Outcome()


KIND = StepKind("fake-step", 1, Params, (), {"made": "report"}, (), run)
'''


def install(
    site: Path, name: str, source: str, *, version: str = "1.0", entry: str = "FEATURES"
) -> Path:
    """Install a distribution of one module; returns the module.

    Args:
        site: A folder that ends in `site-packages`; made when needed.
        name: The distribution's and, with `_` for `-`, its module's.
        source: The module's.
        version: The distribution's.
        entry: What its one entry point names in the module.
    """
    top = name.replace("-", "_")
    info = site / f"{top}-{version}.dist-info"
    info.mkdir(parents=True)
    module = site / f"{top}.py"
    module.write_text(source)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[onnxbuild.features]\nit = {top}:{entry}\n")
    listed = [module.name, *(f"{info.name}/{each}" for each in ("METADATA", "entry_points.txt"))]
    rows = [f"{each},sha256=x,1" for each in listed]
    (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/RECORD,,"]) + "\n")
    return module


def project(root: Path, source: str, *, name: str = "tools/own.py") -> Path:
    """Write a project with one plug-in of its own; returns the plug-in's file."""
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)
    (root / "pyproject.toml").write_text(f'[tool.onnxbuild]\nplugins = ["{name}"]\n')
    return file
