"""A recipe as small as can be, of which every step ends in a tenth of a second."""

from pathlib import Path

from tests.cli.conftest import HELPER, MODEL, RECIPE

ALL = frozenset(
    {
        "export", "reference", "check", "optimize", "benchmark",
        "fp32/check", "fp32/validate", "fp32/package",
    }
)  # fmt: skip
MEASURED = frozenset({"benchmark.json", "benchmark-samples.npz"})


def make(folder: Path) -> Path:
    """Write the project; returns its folder."""
    (folder / "models").mkdir(parents=True)
    (folder / "pyproject.toml").touch()
    recipe = RECIPE.replace("min_samples: 3", "min_samples: 3, baseline: false")
    (folder / "tiny.yaml").write_text(f"{recipe}export: {{exporter: torchscript}}\n")
    (folder / "models/tiny.py").write_text(MODEL)
    (folder / "models/helper.py").write_text(HELPER)
    return folder


def delivered(store: Path) -> dict[str, bytes]:
    """The bytes of all that is below a store's out/, but for what was measured."""
    out = store / "out"
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in sorted(out.glob("[!.]*/**/*"))
        if path.is_file() and path.name not in MEASURED
    }
