"""Write docs/rooms.md, the tables of the package's rooms: `python docs/rooms.py`.

A room is a package with a contract of layers in pyproject.toml.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/rooms.md"
PACKAGE = "onnxbuild"


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


def purpose_of(room: str) -> str:
    """The first sentence of a room's docstring."""
    path = ROOT / room.replace(".", "/")
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return (ast.get_docstring(ast.parse(source.read_text())) or "").partition("\n")[0]


def table(container: str, rows: list[list[str]]) -> Iterator[str]:
    """One container as a table, from its top layer."""
    yield "| layer | room | what is there |"
    yield "|---|---|---|"
    for level, row in enumerate(rows, start=1):
        for name in sorted(row):
            room = f"{container}.{name}"
            yield f"| {level} | `{name}` | {purpose_of(room)} |"


HEAD = """# Rooms

Written by `make golden`. A room is a package or a module; it imports only rooms of lower layers, and `make check` checks that.
[Architecture](architecture.md) says how they work together.
"""


def page() -> str:
    """Text of docs/rooms.md."""
    lines = [HEAD]
    for container, rows in layers().items():
        title = container if container == PACKAGE else container.partition(".")[2]
        lines += [f"## {title}", "", *table(container, rows), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
