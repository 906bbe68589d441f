"""A user's callable, or plain data, and what it may use."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnxbuild.core.state import State

FILE_DATA, DUMMY_DATA, PIPELINE_DATA = "files", "dummy", "pipeline"
"""Targets of an Entrypoint that is no callable: its `files` are the data; the dummy inputs are; what PyTorch's run of the
pipeline gives to the component is."""

COMPONENT = "component"
"""Argument of an Entrypoint of PIPELINE_DATA: the component whose data they are."""

NO_CODE = frozenset({FILE_DATA, DUMMY_DATA, PIPELINE_DATA})


@dataclass(frozen=True, slots=True)
class Entrypoint:
    """A user's callable and what it may use.

    Attributes:
        target: One of NO_CODE where the recipe takes data without a callable; else
            `FILE.py:CALLABLE` (POSIX path relative to the project's root, or below a folder
            of `outside`) or `package.module:CALLABLE`.
        args: Keyword arguments, JSON values.
        files: Declared data files, POSIX paths relative to the project's root (below a folder of
            `outside` when they are outside of it), globs expanded, sorted.
        env: Environment variables it may see: name -> value.
        roots: Folders put on its import path, relative to the project's root or folders of
            `outside`, nearest first.
        outside: Name of a folder outside the project (see core.places) -> where it is on this
            machine, absolute; in no key.
        state: Of a model that has one: which inputs are its caches; left out of keys where there is none.
    """

    target: str
    args: Mapping[str, object] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    roots: tuple[str, ...] = ()
    outside: Mapping[str, str] = field(default_factory=dict, metadata={"local": True})
    state: tuple[State, ...] = field(default=(), metadata={"sparse": True})
