"""Writes the trained network of digits.py as programs: `python recipes/models/digits_programs.py`.

The same weights give the same bytes: what torch keeps of this machine's folders is left out.
"""

import tempfile
import warnings
from pathlib import Path

import torch
from digits import load

from onnxbuild.onnxkit.programs.archives import rewrite_archive

WEIGHTS = Path(__file__).parents[1] / "weights"


def exported():
    """The network as torch.export's program, for 1 to 64 images."""
    batch = torch.export.Dim("batch", min=1, max=64)
    image = torch.zeros(2, 1, 8, 8)
    program = torch.export.export(load(), (image,), dynamic_shapes={"image": {0: batch}})
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)
    return program


def main():
    """Write digits.pt2 and digits.pt."""
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "digits.pt2"
        torch.export.save(exported(), raw)
        rewrite_archive(raw, WEIGHTS / raw.name)
        raw = Path(folder) / "digits.pt"
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            torch.jit.script(load()).save(str(raw))
        rewrite_archive(raw, WEIGHTS / raw.name)


if __name__ == "__main__":
    main()
