"""A random program: pieces, how each is carried and where it runs, and the edits that follow."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tests.attack.law.carriers import CARRIERS, CHILDREN, files_of
from tests.attack.law.contents import Content, Tree
from tests.attack.law.formats import File
from tests.attack.law.pieces import Piece

MAIN, RECIPE = "project/models/main.py", "project/law.yaml"
_MAIN = '''\
"""A network whose bias says all that the program leans on."""

import hashlib
import importlib
import json
import os
import sys

import torch

VALUES = {}


def keep(name, value):
    VALUES[name] = value()


def guard(name, value):
    try:
        VALUES[name] = value()
    except Exception as error:
        VALUES[name] = type(error).__name__


'''
_LOAD = """\


class Network(torch.nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.bias = torch.nn.Parameter(bias)

    def forward(self, input):
        return input.sum() * 0 + self.bias


def load():
    {calls}
    text = json.dumps(VALUES, sort_keys=True, default=str)
    print("VALUES " + text, flush=True)
    digest = hashlib.sha256(text.encode()).digest()
    return Network(torch.tensor(list(digest[:16]), dtype=torch.float32))
"""
_RECIPE = """\
version: 1
name: law
model:
  entrypoint: models/main.py:load
  files: [{files}]
dummy_inputs:
  input: {{dtype: float32, shape: [2, 4]}}
outputs: [logits]
quantization: {{fp32: none}}
"""


@dataclass(frozen=True)
class Part:
    """A piece, and how it is run.

    Attributes:
        number: Its own.
        piece: Numbered.
        carrier: A key of `CARRIERS`.
        module: The module's name.
        base: Which folder its paths start from.
        at_top: Its value is made when its module is imported.
        at_import: It is run when the main module is imported, not in `load()`.
        guarded: The program goes on if it fails.
    """

    number: int
    piece: Piece
    carrier: str
    module: str
    base: str
    at_top: bool
    at_import: bool
    guarded: bool

    @property
    def label(self) -> str:
        moment = "made at import" if self.at_top else "made in a function"
        return f"{self.piece.name} | {self.carrier} | {moment} | {self.base} | {self.module}"

    @property
    def exact(self) -> bool:
        """Whether remarks in its sources don't count."""
        carrier = CARRIERS[self.carrier]
        return self.piece.exact and carrier.exact and carrier.in_process

    @property
    def starts_python(self) -> bool:
        """Whether it starts other processes that import.

        Of these the kernel sees that they list a folder of the import path, not for which names:
        any new name in it counts.
        """
        return not CARRIERS[self.carrier].in_process or "sys.executable" in self.piece.body

    def files(self) -> Tree:
        carrier = CARRIERS[self.carrier]
        more = files_of(
            self.piece, carrier, self.number, self.module, self.base, at_top=self.at_top
        )
        return {**self.piece.files, **more}

    def lines(self) -> tuple[str, str]:
        """What the main module says at its top, and how the value is taken."""
        carrier = CARRIERS[self.carrier]

        def filled_in(text: str) -> str:
            return re.sub(r"\bM\b", self.module, text.replace("@", str(self.number)))

        body = filled_in(carrier.body).replace("\n", "\n    ")
        head = f"{filled_in(carrier.head)}\n\ndef value_of_{self.number}():\n    {body}\n\n"
        how = "guard" if self.guarded else "keep"
        return head, f"{how}({f'{self.number}: {self.label}'!r}, value_of_{self.number})"

    def declared(self) -> tuple[str, ...]:
        filled_in = (
            re.sub(r"\bM\b", self.module, text.replace("@", str(self.number)))
            for text in CARRIERS[self.carrier].declared
        )
        return (*self.piece.declared, *filled_in)


@dataclass(frozen=True)
class Edit:
    """What somebody does between two builds.

    Attributes:
        op: What, as `edits.apply` knows it.
        path: With which file.
        value: What else it takes.
        content: What is put there.
        number: Its place among the edits of its program, from 1.
    """

    op: str
    path: str = ""
    value: str | int = ""
    content: Content | None = None
    number: int = 0


@dataclass(frozen=True)
class Program:
    """A user's project.

    Attributes:
        seed: It was made from.
        parts: What it consists of.
        edits: What is done to it, one after another.
        drawn_by: Options of the command that it was drawn with, besides the seed.
    """

    seed: int
    parts: tuple[Part, ...]
    edits: tuple[Edit, ...] = ()
    drawn_by: str = ""

    @property
    def is_refused(self) -> bool:
        """Whether it reads what nobody declared."""
        return any(path.startswith("shared/") for part in self.parts for path in part.files())

    def tree(self, shared: str) -> Tree:
        """Its files at first."""
        main = _MAIN
        calls = []
        for part in self.parts:
            head, call = part.lines()
            main += head
            if part.at_import:
                main += f"\n{call}\n\n"
            else:
                calls.append(call)
        main += _LOAD.format(calls="\n    ".join(calls))
        patterns = dict.fromkeys(each for part in self.parts for each in part.declared())
        made: Tree = {
            "project/pyproject.toml": File("text", 0, ""),
            RECIPE: _recipe(patterns),
            MAIN: File("py", 0, main),
            "project/models/children.py": File("py", 0, CHILDREN),
            "project/models/spare.txt": File("txt", 10),
        }
        for part in self.parts:
            made |= part.files()
        return {path: _shared(each, shared) for path, each in made.items()}


def _recipe(patterns: Iterable[str]) -> File:
    return File("text", 0, _RECIPE.format(files=", ".join(f"'{each}'" for each in patterns)))


def _shared(content: Content, shared: str) -> Content:
    if isinstance(content, File) and "__SHARED__" in content.text:
        return replace(content, text=content.text.replace("__SHARED__", shared))
    return content
