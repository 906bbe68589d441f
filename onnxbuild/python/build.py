"""A build, as a mapping from names to variants."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from onnxbuild.building.request import Request, load
from onnxbuild.core.errors import did_you_mean
from onnxbuild.document.recipe_names import TypedName
from onnxbuild.output.build import FailureRecord, ResultRecord
from onnxbuild.python.metrics import UnknownNameError, public_names, table
from onnxbuild.python.reports import anchored, write_report
from onnxbuild.python.variant import BuiltVariant


class Build(Mapping[str, BuiltVariant]):
    """A build: `build["int8"]`, or `build["bert:int8"]` where several recipes have an int8.

    Args:
        record: What the run gave.
        summary: Its last line on a terminal.
        request: What was asked for.

    Attributes:
        summary: How many steps were built, reused and failed.
    """

    __slots__ = ("_folder", "_record", "_request", "_variants", "summary")

    def __init__(self, record: ResultRecord, summary: str, request: Request) -> None:
        self._record, self._request = record, anchored(request, Path(record["store"]))
        self._folder = Path.cwd()  # typed paths mean this one's, wherever the process goes
        self.summary = summary
        names = [each["variant"] for each in record["variants"]]
        self._variants = {
            each["variant"]
            if names.count(each["variant"]) == 1
            else f"{each['recipe']}:{each['variant']}": BuiltVariant(each, record, self._request)
            for each in record["variants"]
        }

    @property
    def exit_code(self) -> int:
        """Exit code that the command line would end with: 0 where all was made and passed."""
        return self._record["exit_code"]

    @property
    def ok(self) -> bool:
        """Whether all was made and passed."""
        return self.exit_code == 0

    @property
    def store(self) -> Path:
        """The store's folder, absolute."""
        return Path(self._record["store"])

    @property
    def out(self) -> Path:
        """The folder with RECIPE/VARIANT/ below it, absolute."""
        return Path(self._record["out"])

    @property
    def failures(self) -> tuple[FailureRecord, ...]:
        """The steps and gates that failed: `step`, `what`, `file`, `line`, `fix`, ..."""
        return tuple(self._record["failures"])

    def report(self, path: str | os.PathLike[str] = "report.html") -> Path:
        """Write the HTML report of all that was asked for; return its path, absolute.

        Raises:
            UsageError: Nothing of it is built as the recipes are now.
            StoreError: The file can't be written.
        """
        return write_report(self._request, path)

    def __getitem__(self, name: str) -> BuiltVariant:
        if name in self._variants:
            return self._variants[name]
        found = self._named(name) if isinstance(name, str) else []
        if len(found) == 1:
            return found[0]
        if found:
            keys = [f"{each.recipe}:{each.name}" for each in found]
            what = f"'{name}' is a variant of several recipes: {', '.join(keys)}"
            raise UnknownNameError(what, fix=f"build['{keys[0]}']")
        near = did_you_mean(str(name), self._variants)
        what = f"there is no variant {name!r} in this build{f'; {near}' if near else ''}"
        raise UnknownNameError(what, fix=f"one of {', '.join(self)}" if len(self) else "")

    def _named(self, name: str) -> list[BuiltVariant]:
        """The variants that a name means on a command line."""
        typed = TypedName.parse(name)
        found = [each for each in self._variants.values() if each.name == typed.local]
        recipes = typed.recipes_of(dict.fromkeys((each.recipe for each in found), ""))
        if found and not recipes:  # a file, or the name of one
            files = load(self._request).files
            there = TypedName(str(self._folder / typed.recipe), typed.local)
            recipes = there.recipes_of(files) or typed.recipes_of(files)
        return [each for each in found if each.recipe in recipes]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variants)

    def __len__(self) -> int:
        return len(self._variants)

    def __repr__(self) -> str:
        names = f" {', '.join(self)}" if self else ""
        return f"<Build{names}: {self.summary}>"

    def _repr_html_(self) -> str:
        """The table that a notebook shows."""
        return table([each._row() for each in self.values()], self.summary)  # noqa: SLF001 - of the same API

    def _ipython_key_completions_(self) -> list[str]:
        """Return the names that a notebook completes in `build["`."""
        return list(self)

    def __dir__(self) -> list[str]:
        return public_names(self)
