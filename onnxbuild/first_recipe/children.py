"""Fenced processes of `init`: run a callable of the user's, or a model's file, and ask the frontends what that gave."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onnxbuild.adapters.sandbox.own_project import OwnProject
from onnxbuild.catalog import FRONTENDS, MODEL_SOURCES
from onnxbuild.core.draft import Draft, no_draft
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import from_json
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.data.user_code import an, call_user, misfit, user_line
from onnxbuild.onnxkit.drafts.example_draft import draft_of_examples
from onnxbuild.processes.child_context import ChildContext

_CODE = (".py", ".pyc", ".so")


def look_at_callable(job: Mapping[str, Any]) -> dict[str, Any]:
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
    return {**_as_json(draft), "files": files}


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


def look_at_file(job: Mapping[str, Any]) -> dict[str, Any] | None:
    """Ask a source's frontend what running its file says.

    Args:
        job: `form`: its key in `model`; `path`: absolute; `recipe`: as far as it is known.

    Returns: `recipe`, `comments` and `holes` of the draft; None where there is nothing to say.

    Raises:
        StepError: The file can't be run.
    """
    form, path, recipe = str(job["form"]), Path(job["path"]), job["recipe"]
    source = MODEL_SOURCES[form]
    own = {key: value for key, value in recipe["model"].items() if key != form}
    try:
        options: object = from_json(source.options, own, "model")
        draft = source.tried(path, source.look(path), options, recipe, Path.cwd())
    except SourceError as error:
        raise StepError(error.what, fix=error.fix) from error
    return None if draft is None else _as_json(draft)


def _as_json(draft: Draft) -> dict[str, Any]:
    return {key: dict(getattr(draft, key)) for key in ("recipe", "comments", "holes")}


def note_opened(opened: dict[str, None]) -> None:
    """Note every file that this process opens from now on.

    Args:
        opened: Gets each path, in the form in which it was opened.
    """

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            opened[os.fsdecode(arguments[0])] = None

    sys.addaudithook(hook)
    _note_safetensors(opened)


def _note_safetensors(opened: dict[str, None]) -> None:
    """Note what `safe_open` opens: native code raises no audit event.

    transformers, safetensors.torch and the user's code are imported later, so that they take this function.
    """
    try:
        import safetensors
    except ImportError:
        return
    native = safetensors.safe_open

    def safe_open(filename: Any, *arguments: Any, **named: Any) -> Any:
        opened[os.fsdecode(filename)] = None
        return native(filename, *arguments, **named)

    safetensors.safe_open = safe_open  # type: ignore[misc, assignment] # a class, of which all use calls alone
