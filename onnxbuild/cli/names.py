"""`RECIPE:STEP` on the command line: which file, and which step of its graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from onnxbuild.core.graph import Graph


def split_name(text: str) -> tuple[Path, str]:
    """The recipe file and the step that `text` names.

    Args:
        text: `bert:export`, `recipes/bert.yaml:int8/quantize`; a bare name is looked for in
            recipes/ and here.

    Raises:
        UsageError: No step is named, or there is no such recipe.
    """
    recipe, colon, step = text.rpartition(":")
    if not colon or not recipe or not step:
        raise UsageError(
            f"'{text}' is not RECIPE:STEP", fix="write it like bert:export or bert:int8/quantize"
        )
    return find_recipe(recipe), step


def find_recipe(text: str) -> Path:
    """The file of a recipe given by path or by name.

    Raises:
        UsageError: There is none.
    """
    base = text.partition("@")[0]
    candidates = [Path(text)]
    candidates += [
        Path(folder) / f"{base}{suffix}"
        for folder in ("recipes", ".")
        for suffix in (".yaml", ".yml")
    ]
    for path in candidates:
        if path.is_file():
            return path
    known = sorted(path.stem for path in Path("recipes").glob("*.y*ml"))
    raise UsageError(
        f"there is no recipe '{text}'" + (f"; recipes/ has {', '.join(known)}" if known else ""),
        fix=did_you_mean(base, known) or "give the path of a recipe file",
    )


def find_step(graph: Graph, text: str) -> str:
    """The full name of the step that `text` means.

    Args:
        graph: The recipe's graph.
        text: As typed: `RECIPE:STEP`, RECIPE the name of a recipe (of a matrix, too) or a file.

    Raises:
        UsageError: There is none, or several recipes of a matrix have it.
    """
    names = graph.names()
    if text in names:
        return graph.resolve(text)
    step = text.rpartition(":")[2]
    found = sorted({n for n in names if n.partition(":")[2] == step})
    if len(found) == 1:
        return graph.resolve(found[0])
    if found:
        raise UsageError(
            f"'{step}' is a step of several recipes: {', '.join(found)}", fix=f"write {found[0]}"
        )
    known = sorted({n.partition(":")[2] for n in names})
    raise UsageError(
        f"there is no step '{step}'; there are {', '.join(known)}", fix=did_you_mean(step, known)
    )
