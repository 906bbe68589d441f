"""Make the text of `onnxbuild --help`, without click: that takes longer to import than this takes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

VERBS = {
    "init": "Write a first recipe, from a model or a callable; or a small whole project.",
    "run": "Build recipes: what changed is rebuilt, the rest is reused.",
    "watch": "Build, and build again whenever a file is saved that the build reads.",
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
OPTIONS = {
    "--version": "Show the version and exit.",
    "-h, --help": "Show this message and exit.",
}

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
