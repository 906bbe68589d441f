"""Commands for people to type: with the options that were typed before, quoted for a shell."""

import os
import shlex
from collections.abc import Mapping


def options_again(settings: Mapping[str, str] | None, store: str | None) -> list[str]:
    """Return `--set` and `--store` as they are typed again.

    Args:
        settings: `--set` of the command at hand.
        store: `--store` of it.
    """
    options = [f"--set {shlex.quote(f'{key}={value}')}" for key, value in (settings or {}).items()]
    return options if store is None else [*options, f"--store {shlex.quote(store)}"]


def run_again(
    recipe: str | os.PathLike[str],
    settings: Mapping[str, str] | None = None,
    store: str | None = None,
    *,
    only: str = "",
) -> str:
    """Return the command that builds what another command did not find.

    Args:
        settings: `--set` of the command at hand.
        store: `--store` of it.
        only: What is built; empty for all of the recipe.
    """
    words = ["onnxbuild run", shlex.quote(os.fspath(recipe))]
    words += [f"--only {shlex.quote(only)}"] if only else []
    return " ".join([*words, *options_again(settings, store)])
