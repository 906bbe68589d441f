"""Answers that take neither click nor a graph: `--help`, and verbs on recipes that are up to date."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from onnxbuild.adapters.console.standard_streams import columns
from onnxbuild.adapters.console.wrap import fitted, output_width

TYPE_CHECKING = False  # as in typing, which takes longer to import than most of this
if TYPE_CHECKING:
    from typing import Any

_SHARED = {"--set": "settings"}
_TAKING_VALUES = {
    "run": {**_SHARED, "--only": "only", "--store": "store"},
    "plan": {**_SHARED, "--only": "only", "--store": "store"},
    "lint": _SHARED,
}
_FLAGS = {
    "run": {"--json", "--locked", "-q", "--quiet", "-v", "--verbose", "-k", "--keep-going"},
    "plan": {"--json"},
    "lint": set[str](),
}
ROWS_MAX = 40
"""Rows of a summary that a person reads."""
_NOT_FOR_US = (OSError, UnicodeError, ValueError)
"""Errors of odd paths and names: the whole decision says what is wrong with them."""

Answer = tuple[list[str], list[str]]
"""Lines for standard output and for standard error."""


def answer(arguments: Sequence[str]) -> Answer | None:
    """Return what a command prints; None if this is not the place to know.

    Args:
        arguments: Those of the command line.
    """
    if len(arguments) == 1 and arguments[0] in ("-h", "--help"):
        program = _program()
        return None if program is None else ([help_text(program, columns())], [])
    asked = _parsed(arguments)
    if asked is None:
        return None
    from onnxbuild.building.glance import recall, recalled_lint

    verb, flags, recipes, given = asked
    settings = dict(text.split("=", 1) for text in given["settings"])
    store = os.pathsep.join(given["store"]) or None
    try:
        found = recall(recipes, given["only"], settings, store, locked="--locked" in flags)
    except _NOT_FOR_US:
        return None
    if found is None:
        return None
    if verb == "run":
        as_json, is_quiet = "--json" in flags, bool(flags & {"-q", "--quiet"})
        left = [] if as_json or is_quiet else _left_over(Path(found["store"]), recipes[0], store)
        built = None if flags & {"-v", "--verbose"} else ()
        return up_to_date_lines(found, as_json=as_json, is_quiet=is_quiet, built=built), left
    if verb == "plan":
        names = found["names"].splitlines()
        return (_plan_lines(names, as_json="--json" in flags), []) if names else None
    lint = recalled_lint(found)
    if lint is None:
        return None
    return [fitted(lint[1])], [fitted(f"note: {note}", err=True) for note in lint[0]]


def _left_over(root: Path, recipe: str, store: str | None) -> list[str]:
    from onnxbuild.building.out_folders.owners import leftover_line
    from onnxbuild.project_folder import find_project

    line = leftover_line(root, find_project(Path(recipe)), store)
    return [fitted(line, err=True)] if line else []


def _program() -> str | None:
    """Return the name by which this program was called; None if that is not simply its name."""
    started = getattr(sys.modules["__main__"], "__package__", "")
    return os.path.basename(sys.argv[0]) if started is None else None  # noqa: PTH119 - before pathlib


def _parsed(
    arguments: Sequence[str],
) -> tuple[str, set[str], list[str], dict[str, list[str]]] | None:
    """(verb, flags, recipes, values of options); None unless all of it is plain."""
    verb, rest = (arguments[0], list(arguments[1:])) if arguments else ("", [])
    if verb not in _FLAGS:
        return None
    flags, recipes = set[str](), list[str]()
    given: dict[str, list[str]] = {"only": [], "store": [], "settings": []}
    while rest:
        word = rest.pop(0)
        if word in _FLAGS[verb]:
            flags.add(word)
        elif word in _TAKING_VALUES[verb] and rest:
            given[_TAKING_VALUES[verb][word]].append(rest.pop(0))
        elif word.startswith("-") or not word:
            return None
        else:
            recipes.append(word)
    if any(text.find("=") < 1 for text in given["settings"]):
        return None
    if not recipes or not all(name.endswith((".yaml", ".yml")) for name in recipes):
        recipes, given["only"] = _meant(recipes, given["only"], can_choose=verb != "lint")
    return (verb, flags, recipes, given) if recipes else None


def _meant(
    recipes: list[str], only: list[str], *, can_choose: bool
) -> tuple[list[str], list[str]]:
    """The files of the folders, or of the project, and what of them; no files where the command has to say what is wrong."""
    from onnxbuild.core.errors import BuildError
    from onnxbuild.typed.recipe_files import parts_meant, recipes_meant

    try:
        return recipes_meant(recipes, can_choose=can_choose), [*parts_meant(recipes, only)]
    except (BuildError, *_NOT_FOR_US):
        return [], []


def up_to_date_lines(
    found: Mapping[str, Any],
    *,
    as_json: bool,
    is_quiet: bool = False,
    built: Collection[str] | None = (),
) -> list[str]:
    """Return what `run` says where there is nothing to do.

    Args:
        found: From `glance.recall`.
        is_quiet: Of these, the result alone.
        built: As for `summary_lines`.
    """
    steps = found["steps"]
    if as_json:
        ended = {"type": "run_finished", "run": "", "built": 0, "cached": steps, "failed": 0}
        events = [] if is_quiet else [{**ended, "blocked": 0, "wall_s": 0.0, "exit_code": 0}]
        return [json.dumps(each) for each in (*events, result_record(found))]
    summary = summary_lines(found["summary"], found["skipped"], Path(found["store"]), built)
    return [*summary, f"up to date: {steps} steps, nothing to do"]


def result_record(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the last JSON line of `run` where there is nothing to do, as `outcome.run_result` does.

    Args:
        found: From `glance.recall`.
    """
    return {
        "type": "result",
        "exit_code": 0,
        "store": found["store"],
        "out": os.path.join(found["store"], "out"),  # noqa: PTH118 - before pathlib
        "table": found["summary"],
        "skipped": found["skipped"],
        "variants": json.loads(found["variants"]),
        "failures": [],
    }


def summary_lines(
    rows: list[dict[str, str]], skipped: list[str], store: Path, built: Collection[str] | None = ()
) -> list[str]:
    """Return how the variants compare, and where they are.

    Args:
        rows: One a variant; see `summary.summarize`.
        skipped: A line for each target that was skipped.
        built: Recipes of which something was built now: of more rows than a person reads, some of theirs are shown.
            None to show all.
    """
    if not rows:
        return []
    from onnxbuild.terminal.table import format_table

    every = rows
    if built is not None and len(every) > ROWS_MAX:
        rows = [row for row in every if row["recipe"] in built][:ROWS_MAX]
    lines = [*format_table(rows, output_width(), keys=2), *map(fitted, skipped)]
    if any(cell.endswith(" ?") for row in rows for cell in row.values()):
        lines.append(
            fitted(
                "? the machine was busy, or latency did not settle; to measure again: onnxbuild bench RECIPE"
            )
        )
    if len(rows) < len(every):
        recipes = len({row["recipe"] for row in every})
        shown = f"{len(rows)} of them are shown" if rows else "none of them was built now"
        lines.append(
            fitted(f"{len(every)} variants of {recipes} recipes; {shown}, --verbose shows all")
        )
    return [*lines, f"in {os.path.relpath(store / 'out')}/RECIPE/VARIANT/"]


def plan_line(step: str) -> str:
    """Return the line of `plan` for a step whose result is there."""
    return f"cached  {step}"


def plan_total(steps: int, hits: int, left_out: int) -> str:
    """Return the last line of `plan`."""
    left = f", {left_out} left out" if left_out else ""
    return f"{steps} steps: {hits} cached{left}, {steps - hits - left_out} to look at"


def _plan_lines(names: list[str], *, as_json: bool) -> list[str]:
    if as_json:
        return [
            json.dumps({"step": name, "state": "cached", "reasons": [], "after": []})
            for name in names
        ]
    return [*map(plan_line, names), plan_total(len(names), len(names), 0)]


VERBS = {
    "init": "Write a first recipe, from a model or a callable; or a small whole project.",
    "run": "Build recipes: what changed is rebuilt, the rest is reused.",
    "watch": "Build, and build again whenever a file is saved that the build reads.",
    "worker": "Run steps of `run --executor dask://...` on this machine.",
    "plan": "Show what `run` would build, and why.",
    "why": "Show the inputs that made a step run, or would make it run.",
    "diagnose": "Find the step and the nodes that a variant's error comes from, and a remedy.",
    "diff": "Compare two builds, variants, releases, commits or models: what differs.",
    "bench": "Measure variants side by side, and compare them with other models.",
    "report": "Write a page that shows what was built: verdicts, errors, speed, size.",
    "lock": "Record all inputs and outputs of a recipe's build in a lock file.",
    "reproduce": "Build again from nothing in another folder, and compare every byte.",
    "release": "Write a release of a locked build: a folder and an archive.",
    "verify": "Check a release: checksums, signature, provenance, golden outputs.",
    "push": "Push a variant or a release to an OCI registry, or into an OCI layout.",
    "pull": "Pull what was pushed into a new folder, and check every blob and the signature.",
    "graph": "Draw the graph of steps.",
    "inspect": "Show a model's inputs, outputs, operators and size.",
    "view": "Draw a model's graph as a page: blocks folded, shapes, precision, sensitivity.",
    "log": "Show what a step printed.",
    "lint": "Check recipes without building anything.",
    "explain": "Print recipes in full, with the origin of each value.",
    "schema": "Print the JSON Schema of recipes, for editors.",
    "doctor": "Check this machine: versions, providers, CPU, sandbox.",
    "clean": "Remove folders of artifacts/out/ whose recipe or variant is gone.",
    "cache": "Inspect and clean the store: stats, verify, gc, pins; a key for CI.",
    "completion": "Print the script that completes names in bash, zsh or fish.",
}
OPTIONS = {"--version": "Show the version and exit.", "-h, --help": "Show this message and exit."}

_PURPOSE = (
    "Build ONNX models from YAML recipes: exported, optimized, quantized, validated, measured."
)
_MORE = """
  A first build, and the next commands:
    onnxbuild run recipes/bert.yaml             build every variant
    onnxbuild run recipes/bert.yaml --only int8 build one variant
    onnxbuild plan recipes/bert.yaml            what would run, and why
    onnxbuild why bert:export                   the input that changed

  Exit codes: 0 produced and passed, 1 a step failed, 2 recipe or usage,
  3 a gate failed, 4 not reproducible, 5 undeclared input, 130 interrupted,
  141 the output's reader has gone, 70 a bug in onnxbuild.
"""
_WIDTHS = 50, 78
"""The least and the most characters a line, as in the help of every verb."""


def help_text(program: str, columns: int) -> str:
    """Return the help, without a line's end.

    Args:
        program: How the command was called.
        columns: Characters in a line of the terminal.
    """
    width = max(_WIDTHS[0], min(_WIDTHS[1], columns - 2))
    purpose = textwrap.fill(_PURPOSE, width, initial_indent="  ", subsequent_indent="  ")
    lists = (
        "\n".join(_listed(*each, width)) for each in (("Options", OPTIONS), ("Commands", VERBS))
    )
    head = f"Usage: {program} [OPTIONS] COMMAND [ARGS]...\n\n{purpose}\n{_MORE}"
    return "\n".join((head, "\n\n".join(lists)))


def _listed(title: str, entries: Mapping[str, str], width: int) -> Iterator[str]:
    """A heading and its entries, the texts in one column."""
    yield f"{title}:"
    column = max(map(len, entries)) + 4
    for name, text in entries.items():
        first, *more = textwrap.wrap(text, width - column)
        yield f"  {name.ljust(column - 2)}{first}"
        yield from (" " * column + line for line in more)
