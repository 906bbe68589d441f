"""Fenced process of `init`: run a callable of the user's, and ask the frontends what it gave."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onnxbuild.adapters.sandbox.own_project import OwnProject
from onnxbuild.catalog import FRONTENDS
from onnxbuild.core.draft import Draft, no_draft
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.first_recipe.opened_files import note_opened
from onnxbuild.onnxkit.data.user_code import an, call_user, misfit, user_line
from onnxbuild.onnxkit.drafts.example_draft import draft_of_examples
from onnxbuild.processes.child_context import ChildContext

_CODE = (".py", ".pyc", ".so")


def look(job: Mapping[str, Any]) -> dict[str, Any]:
    """Call a callable and describe what it returned.

    Args:
        job: `project`: its root, absolute; `roots`: import folders, relative to it; `target`:
            `FILE.py:CALLABLE`, relative to it; `inputs`: the same, of a callable that gives examples of the
            model's inputs, or empty; `outside`: declared files outside of it, absolute.

    Returns: `recipe`, `comments` and `holes` of the draft; `files`: those of the project, relative to it,
        that the callable opened or gave.

    Raises:
        StepError: It can't be imported, raises, or returns what no frontend takes.
    """
    project, target = str(job["project"]), str(job["target"])
    mirror = OwnProject(Path.cwd(), Path(project))  # relative paths mean what they mean in a step
    mirror.lay(job["outside"], left_out=())
    os.chdir(mirror.folder)
    opened: dict[str, None] = {}
    note_opened(opened)
    context = ChildContext(
        {"step": target, "memory_bytes": 0, "project": project, "places": {}, "inputs": {}},
        Path(mirror.folder),
        None,
    )
    entrypoint = Entrypoint(target, roots=tuple(job["roots"]))
    make = _called(lambda: context.load(entrypoint), target)
    if not isinstance(make, type) and _draft_of(make) is not None:
        raise StepError(
            f"{target} is the model itself; a recipe names a callable that returns it",
            where=target,
            fix=f"write `def load(): return {target.rpartition(':')[2]}`, and name `load`",
        )
    made = _made(make, target)
    examples = str(job["inputs"])
    if examples:
        given = context.load(Entrypoint(examples, roots=tuple(job["roots"])))
        draft: Draft | None = draft_of_examples(made, _made(given, examples), examples)
    else:
        draft = _draft_of(made)
    if draft is None:
        raise StepError(
            f"{target} returned {an(made)}; `init` writes recipes of models of {' and '.join(_asked())}",
            where=target,
            fix="return a torch.nn.Module, an onnx.ModelProto, or the path of an .onnx file",
        )
    files = _below(project, [*opened, *map(str, draft.files)])
    return {
        "recipe": dict(draft.recipe),
        "comments": dict(draft.comments),
        "holes": dict(draft.holes),
        "files": files,
    }


def _made(make: Callable[[], Any], target: str) -> Any:
    """Call the callable without arguments; return its result.

    Raises:
        StepError: See `_called`; or it needs some.
    """
    try:
        return _called(make, target)
    except StepError as error:
        wrong = misfit(make, {}) if isinstance(error.__cause__, TypeError) else None
        if wrong is None or error.where != target:
            raise
        name, missing = target.rpartition(":")[2], wrong.missing
        raise StepError(
            f"{target} needs {wrong.needed}, and `init` calls it without arguments",
            where=target,
            fix=f"write defaults: `def {name}({', '.join(f'{each}=...' for each in missing)})`",
        ) from error.__cause__


def _called(call: Callable[[], Any], target: str) -> Any:
    """Run code of the user's, which may end by `sys.exit`: a script that reads its command line does.

    Raises:
        StepError: It raises, or exits.
    """
    try:
        return call_user(call, target, target)
    except SystemExit as error:
        code = "" if error.code is None else repr(error.code)
        raise StepError(
            f"{target} left by sys.exit({code})",
            where=user_line(error, sys.path) or target,
            fix="move what exits, or reads a command line, below `if __name__ == '__main__':`",
        ) from error


def _asked() -> list[str]:
    """Names of the frontends that can say something of a callable's model."""
    return [name for name, each in FRONTENDS.items() if each.draft is not no_draft]


def _draft_of(model: object) -> Draft | None:
    drafts = (frontend.draft(model) for frontend in FRONTENDS.values())
    return next((each for each in drafts if each is not None), None)


def _below(project: str, paths: list[str]) -> list[str]:
    """Data files of the project, relative to it, each once."""
    root = os.path.realpath(project)
    found = (os.path.realpath(path) for path in paths if not path.endswith(_CODE))
    names = (os.path.relpath(path, root) for path in found if Path(path).is_file())
    return sorted({name for name in names if not name.startswith((os.pardir, "."))})
