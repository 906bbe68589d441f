"""Variants and steps of a recipe, kept in the user's cache while nothing that decided them changes.

Making the graph of a recipe takes most of a second, longer than a person waits for a TAB. No code of the project is
run for it: its own plug-ins are left out, and a recipe that needs one has nothing to complete.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from onnxbuild import __version__
from onnxbuild.adapters.disk.atomic_files import temp_name
from onnxbuild.adapters.disk.statcache import identity
from onnxbuild.adapters.locate import cache_root
from onnxbuild.core.errors import BuildError, StoreError
from onnxbuild.own_folder import OWN_FOLDER

_FOLDER = "completion"


@dataclass(frozen=True, slots=True)
class RecipeParts:
    """Names that `--only` and RECIPE:NAME take.

    Attributes:
        variants: Variants, formats and what is made of them, in the recipe's order.
        steps: Steps without the recipe's name: `export`, `int8/quantize`.
    """

    variants: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()


def parts_of(file: Path) -> RecipeParts:
    """Return the variants and steps of a recipe's file; those of before where it has faults now."""
    path = os.path.abspath(file)  # noqa: PTH100 - keeps links
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
    kept_in = Path(cache_root(), _FOLDER, f"{name}.json")
    kept, is_fresh = _kept(kept_in)
    if kept is not None and is_fresh:
        return kept
    try:
        parts, decided_by = _read(Path(path))
    except (BuildError, OSError, ValueError):
        return kept or RecipeParts()
    _keep(kept_in, parts, (path, OWN_FOLDER, *decided_by))
    return parts


def _read(path: Path) -> tuple[RecipeParts, list[str]]:
    """The parts, and the paths of the files and folders that decided them."""
    from onnxbuild.adapters.locate import environment
    from onnxbuild.adapters.machine import host_facts
    from onnxbuild.plugins.bring import bring_plugins, plugin_files
    from onnxbuild.project_folder import find_project
    from onnxbuild.recipe.load import load_recipes
    from onnxbuild.resolver import resolve

    bring_plugins()  # installed ones alone
    project = find_project(path)
    loaded = load_recipes(path, project=project, environment=environment())
    graph = resolve(loaded.recipes, host_facts())
    variants = dict.fromkeys(each.name for recipe in loaded.recipes for each in recipe.variants)
    variants |= dict.fromkeys(each.name for each in graph.deliverables)
    steps = dict.fromkeys(address.local for address in graph.addresses.values())
    decided_by = [*map(str, loaded.witnesses), *(str(file) for file, _ in loaded.code)]
    return RecipeParts(tuple(variants), tuple(steps)), [*decided_by, *plugin_files()]


def _kept(file: Path) -> tuple[RecipeParts | None, bool]:
    """Return the cached parts, and whether everything that decided them is as it was."""
    try:
        found = json.loads(file.read_text("utf-8"))
        parts = RecipeParts(tuple(map(str, found["variants"])), tuple(map(str, found["steps"])))
        is_fresh = found["version"] == __version__ and all(
            identity(path) == stamp for path, stamp in found["decided_by"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None, False
    return parts, is_fresh


def _keep(file: Path, parts: RecipeParts, decided_by: Iterable[str]) -> None:
    """Write what was found; a cache that can't be written is no fault of a command line."""
    content = {
        "version": __version__,
        "decided_by": {path: identity(path) for path in dict.fromkeys(decided_by)},
        "variants": parts.variants,
        "steps": parts.steps,
    }
    with contextlib.suppress(OSError, StoreError):
        file.parent.mkdir(parents=True, exist_ok=True)
        whole = file.with_name(temp_name())
        whole.write_text(json.dumps(content), "utf-8")
        whole.replace(file)
