"""`onnxbuild watch`."""

import sys
from collections.abc import Mapping
from pathlib import Path

import click

from onnxbuild.cli.options import (
    machine_options,
    only_option,
    recipes_argument,
    set_option,
    store_option,
)
from onnxbuild.core.errors import UsageError
from onnxbuild.terminal.display import print_line


@click.command("watch")
@recipes_argument(needed=False)
@only_option()
@set_option()
@store_option()
@machine_options()
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON a build.")
@click.option(
    "-k", "--keep-going", is_flag=True, help="After a failure, build what does not depend on it."
)
def command(
    *,
    recipes: tuple[str, ...],
    only: tuple[str, ...],
    settings: Mapping[str, str],
    store: str | None,
    jobs: int | None,
    memory: int | None,
    timeout: float,
    as_json: bool,
    keep_going: bool,
) -> None:
    """Build recipes (all of the project if none is given), and build again whenever a file is saved that they read.

    \b
    onnxbuild watch recipes/bert.yaml
    onnxbuild watch recipes/bert.yaml --only int8/validate

    One screen shows what was saved, what runs, what came out, and what moved since the last good
    build; without a terminal, a line a build. A save while a build runs stops that build and starts
    it anew; finished steps are kept. A recipe with an error is an error on the screen until the
    next save. q ends it with exit code 0, Ctrl-C with 130.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.terminal.watch_displays import BuildLines, JsonBuilds, Screen
    from onnxbuild.watching.loop import Watch

    missing = next((each for each in recipes if not Path(each).is_file()), None)
    if missing is not None:
        raise UsageError(f"there is no file '{missing}'", fix="onnxbuild watch recipes/NAME.yaml")
    asked = {
        "recipes": recipes,
        "only": only,
        "settings": dict(settings),
        "store": store,
        "jobs": jobs,
        "memory": memory,
        "timeout": timeout,
        "keep_going": keep_going,
    }
    if as_json:
        Watch(asked, JsonBuilds(print_line)).run()
    elif sys.stdout.isatty():
        with Screen(" ".join(recipes)) as screen:
            Watch(asked, screen).run()
    else:
        Watch(asked, BuildLines(click.echo)).run()
