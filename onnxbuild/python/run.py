"""Build recipes from Python: `run`."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import store_error
from onnxbuild.building.api import Request
from onnxbuild.building.api import build as build_request
from onnxbuild.building.outcome import end_line, run_result
from onnxbuild.building.wiring import RunOptions
from onnxbuild.python.arguments import as_text, check_limits, listed, path_given, paths_given
from onnxbuild.python.build import Build
from onnxbuild.python.failure import FailedBuildError, FailureNotes
from onnxbuild.python.progress import shown_progress
from onnxbuild.typed.recipe_files import parts_meant, recipes_meant

Recipe = str | os.PathLike[str]


def run(
    recipe: Recipe | Sequence[Recipe] | None = None,
    *,
    only: str | Sequence[str] | None = None,
    force: str | Sequence[str] | None = None,
    settings: Mapping[str, object] | None = None,
    store: Recipe | None = None,
    locked: bool = False,
    jobs: int | None = None,
    memory_bytes: int | None = None,
    timeout_s: float = 3600.0,
    keep_going: bool = False,
    check: bool = True,
    progress: bool | None = None,
) -> Build:
    """Build recipes as `onnxbuild run` does: what changed is rebuilt, the rest is reused.

    The project is found from the recipe's path, so it does not matter which folder this runs in; without a recipe, from the
    working folder. Steps run in processes of
    their own, which import nothing of this one: no `if __name__ == "__main__":` is needed, and it may be called from a
    notebook, a thread or a coroutine (it returns when the build has ended).

    Args:
        recipe: The recipe's file, its name, or a folder that stands for all recipes in it; or several. None for
            those of the project: all in its recipes/, or those that `default` of `[tool.onnxbuild]` in pyproject.toml
            lists.
        only: Variants (int8) or steps (int8/validate) to build, with or without their recipe (bert:int8); None for all.
        force: Variants or steps to run again, though they are up to date; None for none.
        settings: Values in place of the recipe's, as `--set`: `{"opset": 17}`.
        store: The store's folder; None for artifacts/ at the project's root, or ONNXBUILD_STORE.
        locked: Refuse whatever is not as the recipe's lock says.
        jobs: Steps at a time; None for one a core.
        memory_bytes: For all steps; None for 90 % of the machine's.
        timeout_s: Wall time that one step may take.
        keep_going: After a failure, build what does not depend on it.
        check: Raise where a step or a gate fails; else the build says so.
        progress: Show it: in a notebook in the cell's output, elsewhere on standard error. None: in a notebook alone.

    Raises:
        RecipeErrors: All faults of the recipes; nothing was run.
        UsageError: There is no such recipe, variant or step, or an argument has a value that it can't have.
        FailedBuildError: A step or a gate failed; `.build` is what was built.
        BuildError: All else that the command line would end with: str() of it is what that prints.
        KeyboardInterrupt: It was interrupted; finished steps are kept.
    """
    check_limits(jobs, memory_bytes, timeout_s)
    given = paths_given(recipe)
    request = Request(
        recipes=tuple(map(Path, recipes_meant(given, can_choose=True))),
        only=parts_meant(given, listed(only)),
        settings={key: as_text(key, value) for key, value in (settings or {}).items()},
        store=None if store is None else path_given("store", store),
        locked=locked,
    )
    options = RunOptions(jobs, memory_bytes, timeout_s, keep_going, force=listed(force))
    failures = FailureNotes()
    try:
        with shown_progress(progress) as sinks:
            result = build_request(request, options, [failures, *sinks])
        if result.exit_code:
            from onnxbuild.reporting.report import write_failed_pages

            write_failed_pages(request, result)
        made = Build(run_result(result, failures.logs), end_line(result), request)
    except OSError as error:  # what the machine refused, as the command line says it
        raise store_error(error, error.filename or "a file") from error
    if check and result.exit_code:
        raise FailedBuildError(made, failures.lines, result.exit_code)
    return made
