"""docs/notebook.ipynb runs from its first cell to its last in a real kernel; it is committed without outputs."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"

RUN = """\
import sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.read("notebook.ipynb", as_version=4)
nbformat.validate(notebook)
NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[1])
"""


def test_it_is_committed_without_outputs_and_in_one_form():
    text = NOTEBOOK.read_text()
    notebook = json.loads(text)
    assert text == json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.slow
def test_every_cell_runs_and_shows_what_the_text_says(tmp_path):
    shutil.copytree(ROOT / "recipes", tmp_path / "recipes")
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "docs").mkdir()
    shutil.copy(NOTEBOOK, tmp_path / "docs")
    kernel = tmp_path / "jupyter/kernels/python3"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(
        json.dumps(
            {
                "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
                "display_name": "Python 3",
                "language": "python",
            }
        )
    )
    ran = tmp_path / "ran.ipynb"
    done = subprocess.run(
        [sys.executable, "-c", RUN, ran],
        cwd=tmp_path / "docs",
        env={
            "PATH": str(Path(sys.executable).parent) + ":/usr/bin:/bin",
            "HOME": str(tmp_path),
            "JUPYTER_PATH": str(tmp_path / "jupyter"),
            "IPYTHONDIR": str(tmp_path / "ipython"),
            "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    cells = [each for each in json.loads(ran.read_text())["cells"] if each["cell_type"] == "code"]
    shown = [_text_of(cell) for cell in cells]
    progress, table = cells[0]["outputs"]
    assert "built" in "".join(progress["data"]["text/plain"])
    assert "<td>int8</td>" in "".join(table["data"]["text/html"])
    assert "('model.onnx', True, ())" in shown[1]
    assert "evaluate.score" in shown[2]
    assert "times as small" in shown[3]
    assert shown[4] == "(1, 10)"
    assert shown[5] == "('digits-int8.html', True, True)"
    assert "the nearest of 19 are int8" in shown[6]
    assert "3 ['digits:int8/evaluate']" in shown[7]


def _text_of(cell) -> str:
    """What a cell shows as text, without progress."""
    found = []
    for each in cell["outputs"]:
        if each["output_type"] == "stream":
            found.append("".join(each["text"]))
        elif each["output_type"] == "execute_result":
            found.append("".join(each["data"]["text/plain"]))
    return "".join(found).strip()
