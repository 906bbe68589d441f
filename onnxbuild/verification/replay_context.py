"""The context of the step that judges a replay of golden inputs: its inputs, and a folder for its report."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import HEADERS, Finding


@dataclass(frozen=True, slots=True)
class Replayed:
    """One bundle on one provider.

    Attributes:
        metrics: Of the validate step: how many golden points there were, the worst of each measure.
        findings: Breaches of the tolerances that the release records.
        skipped: Why it was not run; empty if it was.
        failed: Why it could not be run where it must run; empty if it could.
    """

    variant: str
    provider: str
    metrics: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()
    skipped: str = ""
    failed: str = ""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """Request for a replay: what is replayed, and how.

    Attributes:
        bundle: A bundle's folder.
        golden: The reference's folder: inputs and the reference's outputs.
        scratch: An empty folder.
        providers: Short names that were asked for; empty for those that the manifest names.
        trusted: Whether programs may be run.
        timeout_s: Wall time that each may take.
    """

    bundle: Path
    golden: Path
    scratch: Path
    providers: Sequence[str]
    trusted: bool
    timeout_s: float


class ReplayContext:
    """Context of a validate step here: two folders to read, one to write.

    Args:
        scratch: For reports that nobody reads.
        headers: The folder of ONNX Runtime's C++ headers; empty for none.
    """

    def __init__(
        self, params: Any, where: str, scratch: Path, inputs: dict[str, Path], headers: str = ""
    ) -> None:
        self.params = params
        self.where = where
        self.memory_bytes = sys.maxsize  # nobody watches it here
        self._scratch = scratch
        self._inputs = inputs
        self._headers = headers

    @property
    def scratch(self) -> Path:
        """The folder for temporary files."""
        return self._scratch

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of all inputs."""
        return tuple(self._inputs)

    def input(self, name: str) -> Path:
        """The folder of an input artifact."""
        return self._inputs[name]

    def output(self, name: str) -> Path:
        """The folder of an output artifact."""
        folder = self._scratch / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def load(self, entrypoint: Entrypoint) -> Callable[..., Any]:
        """No code of the user's is in a release."""
        raise StepError(f"'{entrypoint.target}' is not in a release", where=self.where)

    def code(self, entrypoint: Entrypoint) -> tuple[str, list[str]]:
        """Nor is it here."""
        raise StepError(f"'{entrypoint.target}' is not in a release", where=self.where)

    def place(self, name: str) -> Path | None:
        """The headers; no other tool is looked for here."""
        return Path(self._headers) if name == HEADERS and self._headers else None

    def files(self, entrypoint: Entrypoint) -> tuple[tuple[str, Path], ...]:
        """Nor are files."""
        raise StepError(f"the data of '{entrypoint.target}' is not in a release", where=self.where)

    def progress(self, done: float, total: float = 0, unit: str = "", note: str = "") -> None:
        """Nobody looks on."""
