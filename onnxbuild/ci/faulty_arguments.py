"""Report to CI a command line that can't be understood."""

from collections.abc import Callable, Sequence
from pathlib import Path

from onnxbuild.ci.outputs import CiOutputs


def outputs_of_faulty(arguments: Sequence[str], say: Callable[[str], None]) -> CiOutputs:
    """Return what `run` was asked to leave for CI, as far as a faulty command line says.

    Args:
        arguments: Those of the verb.
        say: Prints a line for GitHub.
    """
    given = list(arguments)
    given = given[: given.index("--")] if "--" in given else given
    files = {name: _value_of(name, given) for name in ("--junit", "--summary")}
    return CiOutputs((), say, files["--junit"], files["--summary"], "--github" in given)


def _value_of(option: str, arguments: Sequence[str]) -> Path | None:
    """The file that an option names: `--junit FILE`, `--junit=FILE`; the last one counts."""
    found = None
    for word, after in zip(arguments, [*arguments[1:], ""], strict=True):
        value = after if word == option else word.removeprefix(f"{option}=")
        if value and not value.startswith("-") and (word == option or value != word):
            found = Path(value)
    return None if found is None or found.is_dir() else found
