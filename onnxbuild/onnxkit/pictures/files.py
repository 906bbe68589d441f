"""Draw a model's page or picture from its file."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.core.sizes import counted
from onnxbuild.onnxkit.model.graphs import all_nodes
from onnxbuild.onnxkit.model.model_files import disk_bytes, load_graph
from onnxbuild.onnxkit.pictures.heat import NO_HEAT, SENSITIVITY_FILE, read_heat
from onnxbuild.onnxkit.pictures.page import lone_svg, model_page


def draw_view(path: Path, suffix: str, *, title: str) -> tuple[str, str]:
    """Draw a model, and what a sensitivity report next to it says.

    Args:
        path: The model's file; weights outside of it are not read.
        suffix: `.html` for a page, `.svg` for the picture alone.
        title: What the model is called.

    Returns: The page or picture, and what it shows, in a few words.

    Raises:
        StepError: The model or the report can't be read.
    """
    model = load_graph(path)
    size = disk_bytes(model, path)
    report = path.with_name(SENSITIVITY_FILE)
    heat = read_heat(report) if report.is_file() else NO_HEAT
    nodes = sum(1 for _ in all_nodes(model))
    if suffix == ".svg":
        text = lone_svg(model, heat=heat, label=f"Graph of {title}")
    else:
        text = model_page(model, title, size, heat=heat)
    with_heat = ", with sensitivity" if heat else ""
    said = (
        f"{counted(nodes, 'node')} of {path.name}, {len(text.encode()) / 1000:.0f} KB{with_heat}"
    )
    return text, said
