"""Every error a user can meet: what is wrong, where, and what to type; each carries its exit code."""

from collections.abc import Iterable, Sequence

EXIT_STEP = 1
EXIT_USAGE = 2
EXIT_GATE = 3
EXIT_NOT_REPRODUCIBLE = 4
EXIT_UNDECLARED_INPUT = 5
EXIT_INTERRUPTED = 130
EXIT_BUG = 70


class BuildError(Exception):
    """Something the user can mend.

    Args:
        what: The value found and those expected, one sentence.
        where: `file:line:column`, a step (`recipe:step`) or an artifact; empty where there is none.
        fix: Something to type or edit; empty where nothing is known to help.
    """

    exit_code = EXIT_STEP

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        says_where = not self.where or self.what.startswith(f"{self.where} ")
        text = self.what if says_where else f"{self.where}: {self.what}"
        return f"{text}\n  fix: {self.fix}" if self.fix else text

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.what, self.where, self.fix))


def _rebuild(kind: type[BuildError], what: str, where: str, fix: str) -> BuildError:
    return kind(what, where=where, fix=fix)


class UsageError(BuildError):
    """The command line asks for something that is not there."""

    exit_code = EXIT_USAGE


class RecipeError(BuildError):
    """One fault of a recipe."""

    exit_code = EXIT_USAGE


class RecipeErrors(BuildError):  # noqa: N818 - it holds several errors
    """Faults of a recipe, all reported at once.

    Args:
        faults: At least one; shown in the order of their lines.
    """

    exit_code = EXIT_USAGE

    def __init__(self, faults: Sequence[RecipeError]) -> None:
        self.faults = tuple(faults)
        count = len(self.faults)
        super().__init__(f"{count} fault{'s' if count != 1 else ''} in the recipe")

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)

    def __reduce__(self) -> tuple[object, ...]:
        return (RecipeErrors, (self.faults,))


class PluginError(BuildError):
    """A plug-in can't be used: it can't be imported, breaks a rule, or does not do what it declares."""

    exit_code = EXIT_USAGE


class StepError(BuildError):
    """A step could not make its outputs."""


class NotApplicableError(StepError):
    """A step has nothing to do for this model, or its tool does not take it: no fault of the data.

    The same inputs will always be refused, so the refusal is kept like a result, and a search goes
    on without what the step would have made.
    """


class UndeclaredInputError(StepError):
    """A step read something that its recipe does not declare."""

    exit_code = EXIT_UNDECLARED_INPUT


class NotReproducibleError(BuildError):
    """Something is not what was recorded of it: in a lock, in a release, in the store."""

    exit_code = EXIT_NOT_REPRODUCIBLE


class BudgetError(BuildError):
    """A release is worse than the one before it by more than its recipe allows."""

    exit_code = EXIT_GATE


class StoreError(BuildError):
    """The store can't be read or written (full disk, no permission, foreign format)."""


def did_you_mean(found: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` for the nearest of `known`, or an empty string."""
    import difflib  # only where something is wrong

    names = list(known)
    same = [each for each in names if each.casefold() == found.casefold()]
    near = same or difflib.get_close_matches(found, names, n=3, cutoff=0.6)
    best = min(near, key=lambda each: slips(found, each), default="")
    return f"did you mean '{best}'?" if best else ""


def slips(found: str, meant: str) -> int:
    """Return the optimal string alignment distance: letters lost, added, replaced, or swapped with the next one.

    Source: Damerau (1964), A technique for computer detection and correction of spelling errors.
    """
    rows = [list(range(len(meant) + 1))]
    for i, one in enumerate(found, 1):
        row = [i]
        for j, other in enumerate(meant, 1):
            same = one == other
            least = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (not same))
            swapped = i > 1 and j > 1 and (one, found[i - 2]) == (meant[j - 2], other)
            row.append(min(least, rows[-2][j - 2] + 1) if swapped else least)
        rows.append(row)
    return rows[-1][-1]


def nearest(found: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Return the names most like what was typed, the most alike first.

    Args:
        known: The names there are.
        most: How many are returned.
    """
    import difflib  # only where something is wrong

    return difflib.get_close_matches(found, list(known), n=most, cutoff=0.0)


def listed(names: Sequence[str], last: str) -> str:
    """Return names as a sentence has them: `a, b and c`.

    Args:
        last: The word before the last: `and`, `or`.
    """
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), names[-1])))
