"""Files read without being declared, one way each: refused by name with the line to add; exit 5."""

from __future__ import annotations

import json

import numpy as np
import pytest

_READERS = {
    "open": "open('{path}', 'rb').read()",
    "numpy": "import numpy; numpy.load('{path}')",
    "mmap": "import mmap; f = open('{path}', 'rb'); mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)",
    "torch-load": "torch.load('{path}', weights_only=True)",
    "safetensors": "from safetensors.torch import load_file; load_file('{path}')",
    "tokenizers": "from tokenizers import Tokenizer; Tokenizer.from_file('{path}')",
    "torch-jit-load": "torch.jit.load('{path}')",
    "subprocess": "import subprocess; subprocess.run(['cat', '{path}'], check=True)",
    "onnxruntime": "import onnxruntime; onnxruntime.InferenceSession('{path}')",
}


def _data(folder, kind):
    """A sound file of its kind; returns its path."""
    import torch
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    path = folder / "models" / f"data-{kind}.bin"
    if kind == "numpy":
        with path.open("wb") as file:
            np.save(file, np.ones(3))
    elif kind == "torch-load":
        torch.save({"w": torch.ones(3)}, path)
    elif kind == "safetensors":
        save_file({"w": np.ones(3, np.float32)}, path)
    elif kind == "tokenizers":
        Tokenizer(WordLevel({"a": 0}, unk_token="a")).save(str(path))
    else:
        path.write_bytes(b"some data")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("kind", _READERS)
def test_an_undeclared_file_is_refused_by_name(project, kind):
    path = _data(project.folder, kind)
    code = _READERS[kind].format(path=path)
    project.edit("models/tiny.py", "    torch.manual_seed(0)", f"    {code}")
    seen = project.run("--only", "export")
    assert seen.code == 5, seen.out
    assert f"'models/{path.name}' is read but not declared (read at models/tiny.py:" in seen.out
    assert f"`files: [models/{path.name}]`" in seen.out
    assert list((project.folder / "artifacts/ac").rglob("*.json")) == []


@pytest.mark.slow
def test_declared_files_are_read_and_keyed_by_content(project):
    lines = []
    for kind in ("open", "numpy", "mmap", "torch-load", "safetensors", "tokenizers", "subprocess"):
        path = _data(project.folder, kind)
        lines.append("    " + _READERS[kind].format(path=path))
    project.edit("models/tiny.py", "    torch.manual_seed(0)", "\n".join(lines))
    declared = "model: {entrypoint: models/tiny.py:load, files: [models/data-*]}"
    project.edit("tiny.yaml", "model: {entrypoint: models/tiny.py:load}", declared)
    assert project.run("--only", "export").code == 0
    with (project.folder / "models/data-numpy.bin").open("wb") as file:
        np.save(file, np.zeros(3))
    again = project.run("--only", "export")
    assert again.ran == ["export"]
    assert "file models/data-numpy.bin: " in again.out


@pytest.mark.slow
def test_the_metadata_that_an_editable_installation_leaves_may_be_read(project):
    project.write("mine.egg-info/PKG-INFO", "Name: mine\nVersion: 1\n")
    project.write("mine.egg-info/entry_points.txt", "[plug]\nin = tiny:load\n")
    asks = "    from importlib.metadata import entry_points; entry_points(group='plug')"
    project.edit("models/tiny.py", "    torch.manual_seed(0)", asks)
    assert project.run("--only", "export").code == 0


@pytest.mark.slow
def test_a_refusal_that_the_code_swallows_is_an_error_all_the_same(project):
    project.write("models/config.json", json.dumps({"width": 4}))
    swallowing = (
        "    try:\n"
        "        import json, pathlib\n"
        "        here = pathlib.Path(__file__).parent\n"
        "        width = json.loads((here / 'config.json').read_text())['width']\n"
        "    except OSError:\n"
        "        width = 8"
    )
    project.edit("models/tiny.py", "    torch.manual_seed(0)", swallowing)
    seen = project.run("--only", "export")
    assert seen.code == 5
    assert "'models/config.json' is read but not declared (read at models/tiny.py:" in seen.out


@pytest.mark.slow
def test_the_network_and_files_elsewhere_are_out_of_reach(project, tmp_path):
    connect = "import socket; socket.create_connection(('127.0.0.1', 9), 1)"
    project.edit("models/tiny.py", "    torch.manual_seed(0)", f"    {connect}")
    seen = project.run("--only", "export")
    assert seen.code == 5
    assert "the step tried to reach the network (at models/tiny.py:" in seen.out

    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_text("x")
    project.edit("models/tiny.py", connect, f"open('{elsewhere}').read()")
    seen = project.run("--only", "export")
    assert seen.code == 5
    assert f"'{elsewhere}' is read but not declared" in seen.out

    project.edit("models/tiny.py", f"open('{elsewhere}').read()", f"open('{elsewhere}', 'w')")
    seen = project.run("--only", "export")
    assert seen.code != 0
    assert elsewhere.read_text() == "x"
