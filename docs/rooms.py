"""The rooms of the package as a table and a picture, for docs/architecture.md: `python docs/rooms.py --write`.

A room is a package with a contract of layers in pyproject.toml. Arrows are imports; one that follows from
others is left out.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/architecture.md"
BEGIN, END = "<!-- rooms: python docs/rooms.py --write -->\n", "<!-- end of rooms -->\n"
PACKAGE = "onnxbuild"

Edges = Mapping[str, set[str]]


def layers() -> dict[str, list[list[str]]]:
    """Container -> its layers from the top, as the contracts have them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    return {
        contract["containers"][0]: [layer.split(" | ") for layer in contract["layers"]]
        for contract in contracts
        if contract["type"] == "layers"
    }


def rooms() -> list[str]:
    """All rooms, of which those that have rooms of their own are left out."""
    found = [
        f"{inside}.{name}" for inside, rows in layers().items() for row in rows for name in row
    ]
    return [room for room in found if room not in layers()]


def files_of(room: str) -> list[Path]:
    """The modules of a room, or of a module that stands for itself."""
    path = ROOT / room.replace(".", "/")
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


def purpose_of(room: str) -> str:
    """The first sentence of a room's docstring."""
    path = ROOT / room.replace(".", "/")
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return (ast.get_docstring(ast.parse(source.read_text())) or "").partition("\n")[0]


def size_of(room: str) -> int:
    """Its lines."""
    return sum(len(path.read_text().splitlines()) for path in files_of(room))


def imports_between(rooms: list[str], graph: grimp.ImportGraph) -> dict[str, set[str]]:
    """Room -> the rooms that its modules import."""
    members = {room: {room, *graph.find_descendants(room)} for room in rooms}
    home = {module: room for room, modules in members.items() for module in modules}
    return {
        room: {
            home[other]
            for module in modules
            for other in graph.find_modules_directly_imported_by(module)
            if other in home and home[other] != room
        }
        for room, modules in members.items()
    }


def reduced(edges: Edges) -> Iterator[tuple[str, str]]:
    """The edges that do not follow from others."""

    def reached(room: str) -> set[str]:
        return (
            edges[room].union(*(reached(each) for each in edges[room])) if edges[room] else set()
        )

    below = {room: reached(room) for room in edges}
    for room, others in edges.items():
        for other in sorted(others):
            if not any(other in below[each] for each in others):
                yield room, other


def picture(container: str, rows: list[list[str]], graph: grimp.ImportGraph) -> Iterator[str]:
    """One container as a mermaid flowchart."""
    rooms = [f"{container}.{name}" for row in rows for name in row]
    yield "```mermaid"
    yield "flowchart TD"
    for room in rooms:
        name = room.rpartition(".")[2]
        yield f'    {name.strip("_")}_["{name}"]'
    for one, other in reduced(imports_between(rooms, graph)):
        ends = (each.rpartition(".")[2].strip("_") for each in (one, other))
        yield "    {}_ --> {}_".format(*ends)
    yield "```"


def table(container: str, rows: list[list[str]]) -> Iterator[str]:
    """One container as a table, from its top layer."""
    yield "| layer | room | what is there |"
    yield "|---|---|---|"
    for level, row in enumerate(rows, start=1):
        for name in sorted(row):
            room = f"{container}.{name}"
            yield f"| {level} | `{name}` | {purpose_of(room)} |"


def pages() -> str:
    """The part of docs/architecture.md that this script writes."""
    graph = grimp.build_graph(PACKAGE)
    lines: list[str] = []
    for container, rows in layers().items():
        title = container if container == PACKAGE else container.partition(".")[2]
        lines += [
            f"### {title}",
            "",
            *picture(container, rows, graph),
            "",
            *table(container, rows),
            "",
        ]
    return "\n".join(lines)


def written(page: str) -> str:
    """The page with that part as it is now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{pages()}\n{END}{after}"


def main() -> int:
    """Print how many lines each room has, or write the rooms into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    if not parser.parse_args().write:
        for room in sorted(rooms(), key=size_of, reverse=True):
            print(f"{size_of(room):7,}  {room}")
        return 0
    PAGE.write_text(written(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
