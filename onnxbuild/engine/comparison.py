"""Compare what a step made with what it made before from the same inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnxbuild.core.action import ActionResult
from onnxbuild.core.artifact import Artifact


@dataclass(frozen=True, slots=True)
class ComparedWithBefore:
    """The outputs of one step, now and before; empty before where there was no result.

    Attributes:
        before: Output -> artifact.
        after: Likewise.
    """

    before: dict[str, Artifact]
    after: dict[str, Artifact]

    @property
    def is_unchanged(self) -> bool:
        """Return whether all bytes are as they were."""
        return bool(self.after) and {**self._digests(self.before)} == {**self._digests(self.after)}

    def sentences(self, step: str) -> Iterator[str]:
        """Yield what a forced step is to say: one sentence, or none where nothing was there before.

        Args:
            step: Its name.
        """
        if not self.before:
            return
        files = [
            path
            for output, artifact in self.after.items()
            for path in _differing(self.before.get(output), artifact)
        ]
        if self.is_unchanged:
            yield f"{step} gave the same bytes again"
        else:
            shown = ", ".join(dict.fromkeys(files)) or "its outputs"
            yield (
                f"{step} is not reproducible: {shown} differs from before, from the same inputs; "
                "the new result is kept"
            )

    @staticmethod
    def _digests(artifacts: dict[str, Artifact]) -> dict[str, str]:
        return {output: artifact.sha256 for output, artifact in artifacts.items()}


def compare_with_before(
    result: ActionResult, before: Sequence[ActionResult]
) -> ComparedWithBefore:
    """Return what a step made, next to what it made before.

    Args:
        result: Of the step.
        before: What it made before, the newest first; empty where there is nothing to compare with.
    """
    return ComparedWithBefore(dict(before[0].outputs) if before else {}, dict(result.outputs))


def _differing(before: Artifact | None, after: Artifact) -> Iterator[str]:
    """Yield the files that are new or of other bytes, and those that are gone."""
    old = dict(before.files) if before else {}
    new = dict(after.files)
    yield from (path for path in new if old.get(path) != new[path])
    yield from (path for path in old if path not in new)
