"""An artifact: a kind and a set of files, named by their content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from onnxbuild.core.digest import Digest, tagged_sha256
from onnxbuild.core.file_names import check_file_names, check_names_everywhere

BUNDLE = "bundle"
"""Kind of the bundles and packages that a release holds, and that are pushed."""


@dataclass(frozen=True)
class Artifact:
    """Output of a step: a kind and a set of files.

    Attributes:
        kind: `onnx-model`, `reference`, `report`, `calibration` or `bundle`.
        files: (POSIX path relative to the artifact, digest), sorted by path.

    Raises:
        ValueError: A path leads elsewhere, is there twice, or is a folder of another; or one of a bundle
            is none to pass on; see `file_names`. Files are written and removed by these names.
    """

    kind: str
    files: tuple[tuple[str, Digest], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", tuple(sorted(self.files)))
        check = check_names_everywhere if self.kind == BUNDLE else check_file_names
        check(path for path, _ in self.files)

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
        kind, files = value["kind"], value["files"]
        if not isinstance(kind, str) or not isinstance(files, list):
            raise TypeError("not an artifact")
        if not all(isinstance(path, str) for path, _, _ in files):
            raise TypeError("a path is not a text")
        return Artifact(kind, tuple((path, Digest(sha, size)) for path, sha, size in files))
