"""Baselines of the same model at default settings: ONNX Runtime's quantizers, and Olive's."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from benchmarks.frontier.ours import EXPORTED
from benchmarks.frontier.subjects import Feeds, Subject
from benchmarks.side_by_side import version_of

HERE = Path(__file__).parent
OLIVE = HERE / "olive_worker.py"


class Reader(CalibrationDataReader):
    """Feeds, one after the other, as ONNX Runtime's calibration takes them."""

    def __init__(self, feeds: Iterator[Feeds]) -> None:
        self._feeds = feeds

    def get_next(self) -> dict[str, np.ndarray] | None:
        """The next, or None at the end."""
        return next((dict(each) for each in self._feeds), None)


def quantize_plainly(subject: Subject, models: dict[str, Path], store: Path) -> dict[str, Path]:
    """Way -> model's file, of ONNX Runtime's quantizers as its documentation calls them.

    Dynamic ones take the fused fp32 model that ours take; the static one takes the export and
    ONNX Runtime's preprocessing, as its documentation asks for.
    """

    def static(source: Path, target: Path) -> None:
        prepared = target.with_name("prepared.onnx")
        try:
            quant_pre_process(str(source), str(prepared))
        except Exception as error:  # noqa: BLE001 - it raises that itself
            reason = f"ORT's preprocessing without symbolic shapes, as it advises: {error}"
            print(f"{subject.name}: {reason}", file=sys.stderr)
            quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        quantize_static(prepared, target, Reader(subject.calibration()))
        prepared.unlink()

    ways: dict[str, tuple[str, Callable[[Path, Path], None]]] = {
        "ORT dynamic": ("fp32", quantize_dynamic),
        "ORT dynamic, per channel": (
            "fp32",
            lambda source, target: quantize_dynamic(source, target, per_channel=True),
        ),
        "ORT static": (EXPORTED, static),
    }
    folder = store / "plain" / subject.name
    version = f"{onnxruntime.__version__} {digest(Path(__file__), *subject.files)}"
    return {
        name: _made(folder, name, models[source], version, make)
        for name, (source, make) in ways.items()
    }


def quantize_with_olive(
    python: str, subject: Subject, models: dict[str, Path], store: Path
) -> dict[str, Path]:
    """Way -> model's file, of Olive's two passes with their defaults; empty where it isn't there.

    Args:
        python: The interpreter that may have it.
        subject: The model.
        models: Name -> file.
        store: Where they go.
    """
    version = version_of([python, "-c", "import olive; print(olive.__version__)"])
    if not version:
        print(f"Olive: not installed for {Path(python).name} (see --olive); left out")
        return {}
    folder = store / "plain" / subject.name
    folder.mkdir(parents=True, exist_ok=True)
    calibration = folder / "calibration.npz"
    feeds = {
        f"{number}/{name}": array
        for number, each in enumerate(subject.calibration())
        for name, array in each.items()
    }
    np.savez(calibration, **feeds)

    def made_by(algorithm: str) -> Callable[[Path, Path], None]:
        def make(source: Path, target: Path) -> None:
            command = [python, OLIVE, algorithm, source, target, calibration]
            done = subprocess.run(
                list(map(str, command)), capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1])

        return make

    version = f"{version} {digest(OLIVE, Path(__file__), *subject.files)}"
    found = {}
    for algorithm, source in (("dynamic", "fp32"), ("static", EXPORTED)):
        name = f"Olive {algorithm}"
        try:
            found[name] = _made(folder, name, models[source], version, made_by(algorithm))
        except RuntimeError as error:
            print(f"{name}: fails on {subject.title}: {error}")
    return found


def digest(*paths: Path) -> str:
    """SHA-256 over files, in hexadecimal."""
    found = hashlib.sha256()
    for path in paths:
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """Run in a temporary working folder, for preprocessing that leaves files where it runs."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)


def _made(
    folder: Path, name: str, source: Path, version: str, make: Callable[[Path, Path], None]
) -> Path:
    """A model that is made once for each source and version."""
    key = hashlib.sha256(f"{name} {version} {digest(source)}".encode()).hexdigest()
    target = folder / key / "model.onnx"
    if not target.exists():
        scratch = folder / f"{key}.new"
        scratch.mkdir(parents=True, exist_ok=True)
        # They warn on each call that there was no preprocessing, and print what they do.
        logging.getLogger().setLevel(logging.ERROR)
        with contextlib.redirect_stdout(io.StringIO()), _elsewhere():
            make(source, scratch / target.name)
        scratch.rename(target.parent)
        print(f"{name}: made", file=sys.stderr)
    return target
