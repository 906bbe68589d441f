"""Write a model's page or picture to a file."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.core.sizes import counted
from onnxbuild.onnxkit.model.graphs import all_nodes
from onnxbuild.onnxkit.model.model_files import disk_bytes, load_graph
from onnxbuild.onnxkit.pictures.heat import NO_HEAT, SENSITIVITY_FILE, read_heat
from onnxbuild.onnxkit.pictures.page import lone_svg, model_page


def write_view(path: Path, target: Path, *, title: str) -> str:
    """Draw a model, and what a sensitivity report next to it says.

    Args:
        path: The model's file; weights outside of it are not read.
        target: `.html` for a page, `.svg` for the picture alone. Its folder is made.
        title: What the model is called.

    Returns: What was written, in a few words.

    Raises:
        StepError: The model or the report can't be read.
    """
    model = load_graph(path)
    size = disk_bytes(model, path)
    report = path.with_name(SENSITIVITY_FILE)
    heat = read_heat(report) if report.is_file() else NO_HEAT
    nodes = sum(1 for _ in all_nodes(model))
    if target.suffix == ".svg":
        text = lone_svg(model, heat=heat, label=f"Graph of {title}")
    else:
        text = model_page(model, title, size, heat=heat)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    with_heat = ", with sensitivity" if heat else ""
    return (
        f"{counted(nodes, 'node')} of {path.name}, {len(text.encode()) / 1000:.0f} KB{with_heat}"
    )
