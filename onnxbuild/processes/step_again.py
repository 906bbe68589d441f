"""The command that runs a step again, from the folder that a person is in."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from onnxbuild.adapters.console.words import near
from onnxbuild.adapters.locate import store_root
from onnxbuild.core.ports import Job
from onnxbuild.document.recipe_names import RecipeName
from onnxbuild.recipe.load import names_in


def recipe_file(job: Job, project: Path) -> str:
    """Return the file that declares a job's step, absolute: a recipe's, or that of a base.

    Args:
        job: The step's.
        project: The project's root, which places are relative to; the working folder may be another.
    """
    return os.path.abspath(os.path.join(project, job.step.location.path))


def again(job: Job, project: Path, store: Path) -> str:
    """Return the command that runs a job's step alone.

    Args:
        job: The step's.
        project: The project's root.
        store: The store's folder.
    """
    file, name = recipe_file(job, project), RecipeName.parse(job.address.recipe).base
    is_own = name in names_in(Path(file), os.environ)  # else it is a base, which can't be built
    words = ["onnxbuild", "run", near(file) if is_own else name, "--only", job.address.local]
    if os.path.abspath(store) != os.path.abspath(store_root(project, None)):
        words += ["--store", near(str(store))]
    return shlex.join(words)
