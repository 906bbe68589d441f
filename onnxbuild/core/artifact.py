"""An artifact: a kind and a set of files, named by their content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from onnxbuild.core.digest import Digest, tagged_sha256


@dataclass(frozen=True)
class Artifact:
    """What a step makes.

    Attributes:
        kind: `onnx-model`, `reference`, `report`, `calibration` or `bundle`.
        files: (POSIX path relative to the artifact, digest), sorted by path.
    """

    kind: str
    files: tuple[tuple[str, Digest], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", tuple(sorted(self.files)))

    @cached_property
    def sha256(self) -> str:
        """Digest over the kind, the paths and the contents: 64 hex digits."""
        return tagged_sha256("artifact", self.to_json())

    @property
    def size_bytes(self) -> int:
        """Sum of the files' sizes."""
        return sum(digest.size_bytes for _, digest in self.files)

    def to_json(self) -> dict[str, object]:
        """A JSON form that `from_json` reads back."""
        return {"kind": self.kind, "files": [[p, d.sha256, d.size_bytes] for p, d in self.files]}

    @staticmethod
    def from_json(value: Mapping[str, object]) -> Artifact:
        """The artifact that `to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: `value` is not such a form.
        """
        files = value["files"]
        if not isinstance(files, list):
            raise TypeError("files is not a list")
        return Artifact(
            kind=str(value["kind"]),
            files=tuple((str(path), Digest(str(sha), int(size))) for path, sha, size in files),
        )
