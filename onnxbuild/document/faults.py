"""The faults of a recipe, gathered until all that can be known is known; and remarks on what is allowed and seldom meant."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from onnxbuild.core.errors import RecipeError, RecipeErrors, did_you_mean
from onnxbuild.core.recipe import Location
from onnxbuild.document.node import Path, Unknown

SHOWN_MAX = 48


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing to mend.

    Attributes:
        what: The value found and those expected.
        at: Where it stands.
        fix: Something to type.
        path: Which part of the recipe can't be used because of it.
        meant: The key that is meant by the one that ends `path`, which is not known; empty for other faults.
        place: Where the key that ends `path` belongs; empty for other faults.
        lacks: Path of a key or a value that is not there; empty for other faults.
    """

    what: str
    at: Location
    fix: str = ""
    path: Path = ()
    meant: str = ""
    place: str = ""
    lacks: str = ""


class Faults:
    """A growing set of faults: no two of the same place and words."""

    def __init__(self) -> None:
        self._faults: dict[tuple[str, Location], Fault] = {}

    def __bool__(self) -> bool:
        return bool(self._faults)

    def add(self, fault: Fault) -> None:
        """Keep one more."""
        self._faults.setdefault((fault.what, fault.at), fault)

    def update(self, faults: Iterable[Fault]) -> None:
        """Keep several more."""
        for fault in faults:
            self.add(fault)

    def error(
        self, files: Sequence[str], said: Callable[[Fault], Fault] = lambda fault: fault
    ) -> RecipeErrors:
        """Return all faults as one error, in the order of files, lines and columns.

        Args:
            files: The files as messages show them, the recipe first.
            said: Returns a fault as it is said.
        """
        places = [fault.place for fault in self._faults.values() if fault.place]

        def is_moved(fault: Fault) -> bool:
            """Return whether another fault has what this one lacks, in the wrong place."""
            own = fault.lacks
            return bool(own) and any(f"{each}.".startswith(f"{own}.") for each in places)

        rank = {path: n for n, path in enumerate(files)}

        def order(fault: Fault) -> tuple[int, str, int, int, str]:
            at = fault.at
            return rank.get(at.path, len(rank)), at.path, at.line, at.column, fault.what

        return RecipeErrors(
            [
                RecipeError(
                    printable(fault.what), where=printable(str(fault.at)), fix=printable(fault.fix)
                )
                for fault in map(said, sorted(self._faults.values(), key=order))
                if not is_moved(fault)
            ]
        )


def printable(text: str) -> str:
    """`text` with escapes for what would move a terminal's cursor."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def show(value: object) -> str:
    """A value as a message quotes it, cut when long."""
    if isinstance(value, str):
        text = value if len(value) <= SHOWN_MAX else f"{value[: SHOWN_MAX - 3]}..."
        return f"'{printable(text)}'"
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, Unknown):
        return "unknown"
    return str(value)


def choices(known: Iterable[object]) -> str:
    """`one of a, b, c`, or the only one."""
    names = [value if isinstance(value, str) else show(value) for value in known]
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


def nearest(found: str, known: Iterable[str]) -> str:
    """The one of `known` that `found` seems to mean, or an empty string."""
    hint = did_you_mean(found, known)
    return hint.removeprefix("did you mean '").removesuffix("'?")


def hinted(what: str, near: str, otherwise: str = "") -> str:
    """Return `what` with the name that is meant, or with what is expected where none is near."""
    if near:
        return f"{what}; did you mean '{near}'?"
    return f"{what}; {otherwise}" if otherwise else what


@dataclass(frozen=True, slots=True)
class Remark:
    """One sentence, and the place in the recipe that it is about.

    Attributes:
        text: The sentence.
        location: None where it is about no place alone.
    """

    text: str
    location: Location | None = None

    def __str__(self) -> str:
        return f"{self.location}: {self.text}" if self.location is not None else self.text
