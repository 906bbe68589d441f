"""What a module of a random program may lean on: one number, and the files that decide it.

In all texts `@` stands for the piece's own number; its files are in `models/d@`, which its code knows
as `D`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tests.attack.law.contents import Content, Link
from tests.attack.law.formats import File


@dataclass(frozen=True)
class Piece:
    """A thing that code leans on.

    Attributes:
        name: What it is, for people.
        body: The body of `value()`.
        files: Path below the project, or `site/NAME`, `shared/NAME` -> what is there at first.
        adds: What may appear and then counts.
        noise: What may appear and does not count.
        declared: Patterns for the recipe.
        spare: Patterns that may be declared later, and change nothing.
        targets: Link -> where else it may lead.
        exact: Whether remarks in its sources don't count.
        light: Whether a fresh interpreter has all that it needs within a tenth of a second.
    """

    name: str
    body: str
    files: Mapping[str, Content]
    adds: Mapping[str, Content] = field(default_factory=dict)
    noise: Mapping[str, Content] = field(default_factory=dict)
    declared: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exact: bool = True
    light: bool = True

    def numbered(self, number: int) -> Piece:
        """This piece with its own number in all its texts."""

        def filled_in(text: str) -> str:
            return text.replace("@", str(number))

        def content(each: Content) -> Content:
            if isinstance(each, Link):
                return Link(filled_in(each.target))
            if isinstance(each, File):
                return replace(each, text=filled_in(each.text))
            files = {filled_in(path): filled_in(text) for path, text in each.files.items()}
            return replace(each, files=files, entry_points=filled_in(each.entry_points))

        def named(files: Mapping[str, Content]) -> dict[str, Content]:
            return {_place(filled_in(path)): content(each) for path, each in files.items()}

        return replace(
            self,
            body=filled_in(self.body),
            files=named(self.files),
            adds=named(self.adds),
            noise=named(self.noise),
            declared=tuple(map(filled_in, self.declared)),
            spare=tuple(map(filled_in, self.spare)),
            targets={
                _place(filled_in(path)): tuple(map(filled_in, each))
                for path, each in self.targets.items()
            },
        )


def _place(path: str) -> str:
    return path if path.startswith(("site/", "shared/")) else f"project/{path}"


Maker = Callable[[random.Random], Piece]


def source(number: int, text: str = "NUMBER = {n}\n") -> File:
    return File("py", number, text)


def two_digits(dice: random.Random) -> int:
    return dice.randint(10, 99)
