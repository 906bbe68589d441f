"""Digests of the code that makes each step kind's output: `python -m tests.golden_steps` rewrites.

A step's result is found again by its kind's `version`, not by its code: whoever changes what a step
makes raises `version`. A test compares this file with the code, so that nobody forgets to ask.
What counts as code is in step_code.py.
"""

import functools
import json
from pathlib import Path
from typing import Any

from onnxbuild.catalog import CATALOG
from tests.step_code import Definition, codes_of

GOLDEN = Path(__file__).parent / "golden" / "steps.json"
_SHOWN = 16  # hex digits


@functools.cache
def codes() -> dict[str, tuple[str, dict[Definition, str]]]:
    """Kind -> (digest of the code that its `run` runs, definition -> digest of its own text alone)."""
    starts = {
        name: Definition(kind.run.__module__, kind.run.__qualname__)
        for name, kind in CATALOG.items()
    }
    found = codes_of(set(starts.values()))
    return {
        name: (
            found[start][0][:_SHOWN],
            {each: digest[:_SHOWN] for each, digest in found[start][1].items()},
        )
        for name, start in starts.items()
    }


def found() -> dict[str, Any]:
    """What the code is now: that of kinds to compare, and definitions to say what changed."""
    return {
        "kinds": {
            name: {"version": kind.version, "code": codes()[name][0]}
            for name, kind in CATALOG.items()
        },
        "definitions": sorted({each for _, own in codes().values() for each in own.values()}),
    }


def main() -> None:
    """Write what the code is now."""
    GOLDEN.write_text(json.dumps(found(), indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
