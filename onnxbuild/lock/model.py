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
        kind: `kind/version`.
        key: The action's key.
        outputs: Output name -> digest of the artifact and the size of its files; empty for a
            step that measures, since no two of its outputs are equal.
    """

    kind: str
    key: str
    outputs: Mapping[str, Digest]


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
        choices: `RECIPE:VARIANT` -> the trial that `mode: auto` chose.
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
                    "kind": step.kind,
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

        def strings(key: str) -> dict[str, str]:
            return {str(name): str(text) for name, text in value[key].items()}

        return Lock(
            recipe=str(value["recipe"]),
            onnxbuild=str(value["onnxbuild"]),
            resolved=dict(value["resolved"]),
            host=strings("host"),
            python=str(value["python"]),
            packages=strings("packages"),
            files=strings("files"),
            sources=strings("sources"),
            folders={folder: tuple(found) for folder, found in value["folders"].items()},
            steps={
                str(name): LockedStep(
                    kind=str(step["kind"]),
                    key=str(step["key"]),
                    outputs={
                        str(output): Digest(str(each["sha256"]), int(each["size_bytes"]))
                        for output, each in step["outputs"].items()
                    },
                )
                for name, step in value["steps"].items()
            },
            choices=strings("choices"),
            measurements=dict(value["measurements"]),
        )
