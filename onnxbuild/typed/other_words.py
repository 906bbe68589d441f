"""Say what to type for verbs and options that other tools have, in a usage error of click's."""

import difflib
import shlex
from collections.abc import Collection
from pathlib import Path

import click

_VERBS = {
    "run": "build rebuild make compile export convert quantize optimize all start exec train",
    "plan": "status dry-run dryrun outdated",
    "inspect": "info show print summary stats",
    "view": "visualize visualise netron draw",
    "bench": "benchmark perf profile measure",
    "lint": "check validate test",
    "init": "new create scaffold",
    "graph": "dag list ls steps targets",
    "explain": "config options",
    "log": "logs output",
    "cache": "gc prune purge",
    "reproduce": "replay",
    "release": "publish package deploy",
    "doctor": "env diagnostics providers",
}
"""Verb -> words of other tools for it."""

_OPTIONS = {
    "--variant": "--only", "--variants": "--only", "--step": "--only", "--target": "--only", "--select": "--only",
    "--no-cache": "--force", "--rebuild": "--force", "--clean": "--force", "--rerun": "--force",
    "--define": "--set", "--override": "--set", "-D": "--set", "-s": "--set", "--var": "--set",
    "--threads": "--jobs", "--workers": "--jobs", "--parallel": "--jobs", "-n": "--jobs",
    "--cache": "--store", "--cache-dir": "--store", "--output": "--store", "--out": "--store",
    "--mem": "--memory", "--keep": "--keep-going", "--silent": "--quiet", "--frozen": "--locked",
}  # fmt: skip
"""Option of other tools -> ours; it counts only where a verb has it."""

_SESSION_THREADS = "For the threads of a model's session: --set session.intra_op_threads=4"
"""The other meaning of `--threads`, where a verb has `--set`."""


def verb_hint(found: str, rest: Collection[str], verbs: Collection[str]) -> str:
    """A sentence on what to type for something that is no verb; empty if nothing is near.

    Args:
        found: The word in the verb's place.
        rest: The words after it.
        verbs: Those that there are.
    """
    quoted = shlex.quote(found)
    if found.endswith((".yaml", ".yml")):
        return f"To build it: onnxbuild run {quoted}"
    if Path(found).is_file():
        return f"To write its first recipe: onnxbuild init {quoted}"
    if found == "help":
        asked = next((each for each in rest if each in verbs), "")
        return f"For the help: onnxbuild {f'{asked} --help' if asked else '--help'}"
    if found == "version":
        return "For the version: onnxbuild --version"
    meant = next((verb for verb, words in _VERBS.items() if found.lower() in words.split()), "")
    if meant in verbs:
        return f"Did you mean '{meant}'?"
    if Path(found).is_dir():
        return f"To build its recipes: onnxbuild run {quoted}"
    near = difflib.get_close_matches(found, verbs, n=1)
    return f"Did you mean '{near[0]}'?" if near else ""


def with_hint(error: click.NoSuchOption) -> click.UsageError:
    """Return the error with the option that another tool's stands for, in place of those spelled alike.

    Args:
        error: Raised by click for a verb's options.
    """
    name = error.option_name
    known = [] if error.ctx is None else [each.opts for each in error.ctx.command.params]
    meant = _OPTIONS.get(name)
    if name in {"--dry-run", "--dryrun", "-n"} and _verb_of(error) == "run":
        hint = "To see what would run: onnxbuild plan"
    elif name in {"--quiet", "-q"} and _verb_of(error) == "watch":
        hint = "For one line a build: onnxbuild watch | cat"
    elif any(meant in each for each in known):
        hint = f"Did you mean '{meant}'?"
        if name == "--threads" and any("--set" in each for each in known):
            hint = f"{hint} {_SESSION_THREADS}"
    else:
        return error
    return click.UsageError(f"No such option '{name}'. {hint}", error.ctx)


def _verb_of(error: click.NoSuchOption) -> str:
    return "" if error.ctx is None else str(error.ctx.info_name)
