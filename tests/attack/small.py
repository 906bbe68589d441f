"""A small recipe whose model leans on all that a model may lean on, one number from each.

Every number that it finds goes into the bias, so that each thing it reads decides the model's bytes.
"""

import base64
import hashlib
import json
import shutil
import sys
import sysconfig
import venv
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

MODEL = '''\
"""A small network."""

import sched
import importlib
import json
import mmap
import os
import pathlib
import subprocess

import torch

import left
import right
import small_hooked
import small_installed
import small_linked

try:
    import small_optional
except ImportError:
    small_optional = None

HERE = pathlib.Path(__file__).parent
DATA = HERE / "data"


def numbers(layer):
    """What each thing that the model leans on says."""
    yield left.NUMBER * 2 + right.NUMBER
    from lazy import number  # imported when it is needed

    yield number()
    yield importlib.import_module(f"layer_{layer}").NUMBER
    yield small_installed.NUMBER
    yield small_linked.NUMBER
    yield small_hooked.NUMBER
    yield small_optional.NUMBER if small_optional else 1
    yield getattr(sched, "NUMBER", 1)
    yield float(os.environ.get("SMALL_NUMBER", "1"))
    yield json.loads((DATA / "config.json").read_text())["number"]
    yield sum(float(path.read_text()) for path in sorted(DATA.glob("parts/*.txt")))
    yield float((DATA / "plain.txt").read_text())
    yield from libraries()


def libraries():
    """What is read by other hands than Python's `open`."""
    import numpy
    import onnxruntime
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    yield numpy.load(DATA / "numpy.npy").item()
    yield torch.load(DATA / "torch.pt", weights_only=True)["number"].item()
    yield load_file(DATA / "safe.safetensors")["number"].item()
    yield Tokenizer.from_file(str(DATA / "tokens.json")).get_vocab_size()
    yield torch.jit.load(str(DATA / "jit.pt"))(torch.zeros(1)).item()
    with (DATA / "mapped.bin").open("rb") as file:
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
            yield float(view[:])
    path = str(DATA / "piped.txt")
    yield 3 * float(subprocess.run(["cat", path], capture_output=True, check=True).stdout)
    yield onnxruntime.InferenceSession(DATA / "graph.onnx").run(None, {})[0].item()


class Small(torch.nn.Module):
    def __init__(self, width, bias):
        super().__init__()
        self.first = torch.nn.Linear(4, width)
        self.second = torch.nn.Linear(width, 2)
        self.second.bias.data.add_(bias / 64)

    def forward(self, input):
        return self.second(torch.relu(self.first(input)))


def load(width=32, layer="plain", unused=0):
    torch.manual_seed(0)
    return Small(width, sum(numbers(layer)))


def load_twice(width=32, layer="plain", unused=0):
    torch.manual_seed(0)
    return Small(width, 2 * sum(numbers(layer)))
'''

SOURCES = {
    "small.py": MODEL,
    "left.py": "NUMBER = 3\n",
    "right.py": "NUMBER = 5\n",
    "lazy.py": "def number():\n    return 1\n",
    "layer_plain.py": "NUMBER = 1\n",
}

FILES = (
    "config.json",
    "parts/*.txt",
    "plain.txt",
    "numpy.npy",
    "torch.pt",
    "safe.safetensors",
    "tokens.json",
    "jit.pt",
    "mapped.bin",
    "piped.txt",
    "graph.onnx",
)

RECIPE = """\
version: 1
name: small
description: for attacks
model:
  entrypoint: models/small.py:load
  args: {{layer: plain, unused: 0}}
  env: [SMALL_NUMBER]
  files:
{files}
dummy_inputs:
  input: {{dtype: float32, shape: [batch, 4]}}
outputs: [logits]
dynamic_axes:
  batch: {{min: 1, max: 8, example: 2}}
export: {{exporter: torchscript}}
quantization:
  fp32: none
  int8: {{mode: dynamic, validate: {{cosine_min: 0.9}}}}
benchmark: {{max_time_s: 0.1, min_samples: 3, baseline: false}}
"""


def make(folder: Path) -> None:
    """Write the project into `folder`."""
    (folder / "models/data/parts").mkdir(parents=True)
    (folder / "pyproject.toml").touch()
    files = "\n".join(f"    - models/data/{name}" for name in FILES)
    (folder / "small.yaml").write_text(RECIPE.format(files=files))
    for name, text in SOURCES.items():
        (folder / "models" / name).write_text(text)
    for number, name in enumerate(FILES, start=1):
        write_number(folder, name.replace("*", "one"), number)


def write_number(folder: Path, name: str, number: int) -> None:
    """Write a data file of the model, in its own format, so that it says `number`."""
    path = folder / "models/data" / name
    kind = name.rpartition("/")[2].partition(".")[0]
    if kind == "config":
        path.write_text(json.dumps({"number": number}))
    elif kind == "numpy":
        np.save(path, np.float32(number))
    elif kind in {"torch", "safe", "jit"}:
        _write_torch(path, kind, number)
    elif kind == "tokens":
        words = {f"word{n}": n for n in range(number)}
        Tokenizer(WordLevel(words, unk_token="word0")).save(str(path))
    elif kind == "graph":
        _write_graph(path, number)
    else:
        path.write_text(str(number))


def _write_graph(path: Path, number: int) -> None:
    value = onnx.helper.make_tensor("number", onnx.TensorProto.FLOAT, [], [number])
    node = onnx.helper.make_node("Constant", [], ["number"], value=value)
    output = onnx.helper.make_tensor_value_info("number", onnx.TensorProto.FLOAT, [])
    graph = onnx.helper.make_graph([node], "graph", [], [output])
    opset = onnx.helper.make_opsetid("", 18)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10), path)


def _write_torch(path: Path, kind: str, number: int) -> None:
    value = {"number": torch.tensor(float(number))}
    if kind == "torch":
        torch.save(value, path)
    elif kind == "safe":
        save_file(value, path)
    else:
        with warnings.catch_warnings():  # TorchScript is on its way out, and still in use
            warnings.simplefilter("ignore", DeprecationWarning)
            torch.jit.trace(lambda x: x + number, torch.zeros(1)).save(str(path))


class Interpreter:
    """A virtual environment that sees all that is installed here, and packages of its own.

    Args:
        folder: Where it is made.
    """

    def __init__(self, folder: Path) -> None:
        venv.create(folder, symlinks=True)
        self.python = str(folder / "bin/python")
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self._site = folder / "lib" / version / "site-packages"
        here = sysconfig.get_paths()["purelib"]
        (self._site / "here.pth").write_text(f"import site; site.addsitedir({here!r})\n")

    def install(
        self, name: str, version: str, files: Mapping[str, str], editable: Path | None = None
    ) -> None:
        """Put a package's files, and what pip writes about them, in its place."""
        for info in self._site.glob(f"{name}-*.dist-info"):
            shutil.rmtree(info)
        info = self._site / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        if editable is not None:
            origin = {"dir_info": {"editable": True}, "url": editable.as_uri()}
            (info / "direct_url.json").write_text(json.dumps(origin))
        rows = [f"{info.name}/METADATA,,", f"{info.name}/RECORD,,"]
        for path, text in files.items():
            (self._site / path).write_text(text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
            rows.append(f"{path},sha256={digest.decode().rstrip('=')},{len(text)}")
        (info / "RECORD").write_text("".join(f"{row}\n" for row in rows))

    def link(self, name: str, folder: Path) -> None:
        """Install a package in place, as `pip install --editable` with a path."""
        self.install(name, "1.0", {f"__editable__.{name}.pth": f"{folder}\n"}, folder)

    def hook(self, name: str, folder: Path) -> None:
        """Install a package in place, as `pip install --editable` with an import hook."""
        finder = f"__editable___{name}_finder"
        files = {
            f"{finder}.py": _FINDER.format(name=name, path=str(folder / f"{name}.py")),
            f"__editable__.{name}.pth": f"import {finder}; {finder}.install()\n",
        }
        self.install(name, "1.0", files, folder)


_FINDER = """\
import sys
from importlib.util import spec_from_file_location

class Finder:
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname == {name!r}:
            return spec_from_file_location(fullname, {path!r})

def install():
    sys.meta_path.append(Finder)
"""
