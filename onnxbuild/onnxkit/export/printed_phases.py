"""Read the phases of PyTorch's exporter from what it prints, and pass them on."""

from __future__ import annotations

import io
from collections.abc import Mapping

from onnxbuild.onnxkit.host.progress import phase

_PHASES: Mapping[str, str] = {
    "Obtain model graph": "dynamo: tracing",
    "Run decompositions": "dynamo: decomposing",
    "Translate the graph": "dynamo: translating to ONNX",
    "Optimize the ONNX graph": "dynamo: optimizing",
}
"""Beginning of a line that the exporter prints -> the phase that starts there."""
_MARK, _ENDED = "[torch.onnx] ", ("✅", "❌")


class PrintedPhases(io.TextIOBase):
    """Takes what the exporter prints with `verbose=True`; keeps nothing of it."""

    def __init__(self) -> None:
        super().__init__()
        self._begun = ""

    def writable(self) -> bool:
        """Return True: it takes text."""
        return True

    def write(self, text: str) -> int:
        """Take text; each line that says what begins is passed on as a phase."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            if line.startswith(_MARK) and not line.endswith(_ENDED):
                said = line.removeprefix(_MARK)
                for start, words in _PHASES.items():
                    if said.startswith(start):
                        phase(words)
        return len(text)
