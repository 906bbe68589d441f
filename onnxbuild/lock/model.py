"""What a lock says: everything that went into a recipe's build, and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onnxbuild.core.digest import Digest

LOCK_FORMAT = 1  # increment when the file's form changes


@dataclass(frozen=True, slots=True)
class LockedStep:
    """One step.

    Attributes:
        kind: The step's kind.
        version: That kind's version.
        key: The action's key.
        outputs: Output name -> digest of the artifact and the size of its files; empty for a
            step that measures, since no two of its outputs are equal.
    """

    kind: str
    version: int
    key: str
    outputs: Mapping[str, Digest]

    @property
    def kind_version(self) -> str:
        """`export/3`, as the file and people have it."""
        return kind_version(self.kind, self.version)


def kind_version(kind: str, version: int) -> str:
    """Return a kind and its version as the file and people have them: `export/3`."""
    return f"{kind}/{version}"


@dataclass(frozen=True, slots=True)
class Lock:
    """One recipe file's build.

    Attributes:
        recipe: The recipe's path, relative to the project's root.
        onnxbuild: Version of this program.
        resolved: Recipe name -> the recipe with bases, templates and defaults filled in.
        host: What of the machine can change numbers.
        python: The Python build.
        packages: Distribution -> `name version RECORD-digest`.
        files: File that was declared or opened -> sha256 of its bytes, or NO_FILE.
        sources: Python source that was imported -> sha256 of its syntax tree.
        folders: Import folder -> modules found in it that were looked for.
        steps: Step name -> what it was made from and what it gave.
        choices: `RECIPE:VARIANT` -> the trial that `mode: auto` chose; `RECIPE:VARIANT/session` ->
            the settings that `session: {tune: true}` found, as JSON.
        measurements: Name of a step that measures -> its report, as it was when the lock was
            made; never compared.
    """

    recipe: str
    onnxbuild: str
    resolved: Mapping[str, Any]
    host: Mapping[str, str]
    python: str
    packages: Mapping[str, str]
    files: Mapping[str, str]
    sources: Mapping[str, str]
    folders: Mapping[str, tuple[str, ...]]
    steps: Mapping[str, LockedStep]
    choices: Mapping[str, str] = field(default_factory=dict)
    measurements: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """A JSON form that `from_json` reads back."""
        return {
            "format": LOCK_FORMAT,
            "recipe": self.recipe,
            "onnxbuild": self.onnxbuild,
            "resolved": dict(self.resolved),
            "host": dict(self.host),
            "python": self.python,
            "packages": dict(self.packages),
            "files": dict(self.files),
            "sources": dict(self.sources),
            "folders": {folder: list(found) for folder, found in self.folders.items()},
            "steps": {
                name: {
                    "kind": step.kind_version,
                    "key": step.key,
                    "outputs": {
                        output: {"sha256": digest.sha256, "size_bytes": digest.size_bytes}
                        for output, digest in step.outputs.items()
                    },
                }
                for name, step in self.steps.items()
            },
            "choices": dict(self.choices),
            "measurements": dict(self.measurements),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Lock:
        """The lock that `to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: `value` is no such form.
        """
        if value["format"] != LOCK_FORMAT:
            raise ValueError(f"format {value['format']!r}; expected {LOCK_FORMAT}")

        lock = Lock(
            recipe=_text(value["recipe"]),
            onnxbuild=_text(value["onnxbuild"]),
            resolved=dict(value["resolved"]),
            host=_texts(value["host"]),
            python=_text(value["python"]),
            packages=_texts(value["packages"]),
            files=_texts(value["files"]),
            sources=_texts(value["sources"]),
            folders={
                _text(folder): tuple(map(_text, found))
                for folder, found in value["folders"].items()
            },
            steps={_text(name): _step(step) for name, step in value["steps"].items()},
            choices=_texts(value["choices"]),
            measurements=dict(value["measurements"]),
        )
        unknown = value.keys() - lock.to_json().keys()
        if unknown:
            raise ValueError(f"key '{min(unknown)}' is not one of a lock's")
        return lock


def _step(value: Mapping[str, Any]) -> LockedStep:
    kind, version = _kind_and_version(_text(value["kind"]))
    return LockedStep(
        kind=kind,
        version=version,
        key=_text(value["key"]),
        outputs={_text(name): _digest(each) for name, each in value["outputs"].items()},
    )


def _kind_and_version(text: str) -> tuple[str, int]:
    kind, _, version = text.rpartition("/")
    if not (version.isdecimal() and kind_version(kind, int(version)) == text):
        raise ValueError(f"{text!r} is no step kind with its version")
    return kind, int(version)


def _digest(value: Mapping[str, Any]) -> Digest:
    size_bytes = value["size_bytes"]
    if type(size_bytes) is not int:
        raise ValueError(f"{size_bytes!r} is no size")
    return Digest(_text(value["sha256"]), size_bytes)


def _texts(value: Mapping[str, Any]) -> dict[str, str]:
    return {_text(name): _text(text) for name, text in value.items()}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a string")  # noqa: TRY004 - a value of a file
    return value
