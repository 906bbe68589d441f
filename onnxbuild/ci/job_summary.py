"""A run in Markdown, for the page of a CI job: the table of variants, what failed, and what to type."""

import re
from collections.abc import Sequence

from onnxbuild.ci.github import depending
from onnxbuild.core.errors import EXIT_GATE, EXIT_USAGE
from onnxbuild.output.build import FailureRecord, ResultRecord, VariantRecord
from onnxbuild.output.error_record import ErrorRecord

_MARKS = re.compile(r"([\\`*_{}\[\]#|~!])")
_TEXT_COLUMNS = 2
_SKIPPED = "\N{BLACK RIGHT-POINTING DOUBLE TRIANGLE WITH VERTICAL BAR}\ufe0f skipped"


def summary_of_run(result: ResultRecord, end: str) -> str:
    """Return a run's summary.

    Args:
        end: Its last line: how many steps were built.
    """
    state = "passed" if result["exit_code"] == 0 else f"failed (exit code {result['exit_code']})"
    blocks = [f"### onnxbuild: {state}"]
    if result["variants"]:
        blocks.append("\n".join(_table(result["variants"])))
    if result["failures"]:
        blocks.append("#### What failed")
        blocks.append("\n".join(map(_failure, result["failures"])))
    if result["skipped"]:
        blocks.append("\n".join(f"- {_escaped(line)}" for line in result["skipped"]))
    return "\n\n".join([*blocks, _escaped(end)]) + "\n"


def summary_of_error(error: ErrorRecord) -> str:
    """Return the summary of a run that ended without a result."""
    lines = []
    for each in error["errors"]:
        place = f"{_code(each['where'])}: " if each["where"] else ""
        lines.append(f"- {place}{_escaped(each['what'])}")
        if each["fix"]:
            lines.append(f"  - fix: {_escaped(each['fix'])}")
    what = "nothing was run" if error["code"] == EXIT_USAGE else "the run has no result"
    head = f"### onnxbuild: {what} (exit code {error['code']})"
    return "\n\n".join([head, "\n".join(lines)]) + "\n"


def _table(variants: Sequence[VariantRecord]) -> list[str]:
    titles = list(dict.fromkeys(title for each in variants for title in each["cells"]))
    heads = ["recipe", "variant", *titles, "gates"]
    aligned = ["---"] * _TEXT_COLUMNS + ["---:"] * len(titles) + ["---"]
    lines = [_row([_escaped(head) for head in heads]), _row(aligned)]
    for each in variants:
        cells = [_escaped(each["cells"].get(title, "-")) for title in titles]
        lines.append(
            _row([_escaped(each["recipe"]), _escaped(each["variant"]), *cells, _gates(each)])
        )
    return lines


def _gates(each: VariantRecord) -> str:
    failed = [verdict["step"] for verdict in each["verdicts"] if verdict["state"] == "failed"]
    if failed:
        return f"\N{CROSS MARK} {', '.join(map(_code, failed))}"
    if not each["made"]:
        return "not made"
    skipped = [verdict for verdict in each["verdicts"] if verdict["state"] == "skipped"]
    named = ", ".join(f"{_code(one['step'])} ({_escaped(one['reason'])})" for one in skipped)
    if each["passed"]:
        more = f"; {_SKIPPED} {named}" if skipped else ""
        return f"\N{WHITE HEAVY CHECK MARK} passed{more}"
    return f"{_SKIPPED} {named}" if skipped else "not passed"


def _failure(each: FailureRecord) -> str:
    kind = "gate" if each["code"] == EXIT_GATE else "step"
    place = f" at {_code(_place(each))}" if each["file"] else ""
    lines = [f"- {kind} {_code(each['step'])}{place}: {_escaped(each['what'])}"]
    if each["fix"]:
        lines.append(f"  - fix: {_escaped(each['fix'])}")
    if each["blocked"]:
        lines.append(f"  - {depending(each['blocked'])}")
    return "\n".join(lines)


def _place(each: FailureRecord) -> str:
    return f"{each['file']}:{each['line']}" if each["line"] else str(each["file"])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    """Text as code; in a table, a bar ends a cell even there."""
    text = " ".join(text.split()).replace("|", "\\|")
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}" if fence == "`" else f"{fence} {text} {fence}"


def _escaped(text: str) -> str:
    """Text as it is: no mark of Markdown, no element of HTML, one line."""
    shown = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKS.sub(r"\\\1", shown)
