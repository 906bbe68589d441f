"""A plug-in that ends its process, or closes its streams, is a fault and no end of the run."""

import subprocess
import sys

import pytest

from onnxbuild.plugins.load import load_file


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("os._exit(0)", "the plug-in ends its process with exit code 0 when it is imported"),
        ("os._exit(3)", "the plug-in ends its process with exit code 3 when it is imported"),
        ("os.kill(os.getpid(), 9)", "the plug-in makes its process end by SIGKILL when it is"),
        ("os.close(1)", "the plug-in closes or replaces standard output when it is imported"),
        (
            "[os.close(n) for n in range(3)]",
            "standard input and standard output and standard error",
        ),
    ],
)
def test_harm_to_the_process_is_a_fault(tmp_path, code, what):
    (tmp_path / "mine.py").write_text(f"import os\n{code}\n")
    load = (  # in a process of its own: one with threads, such as pytest-xdist's, tries nothing
        "from pathlib import Path\n"
        "from onnxbuild.plugins.load import load_file\n"
        f"fault = load_file(Path({str(tmp_path)!r}), 'mine.py').fault\n"
        "print(fault.what, fault.where)"
    )
    done = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True, check=True)
    assert what in done.stdout
    assert "mine.py" in done.stdout


def test_what_raises_is_reported_by_the_import_that_counts(tmp_path, capfd):
    (tmp_path / "mine.py").write_text("print('once')\nraise ValueError('no')\n")
    assert "raises ValueError when it is imported: no" in load_file(tmp_path, "mine.py").fault.what
    assert capfd.readouterr() == ("", "once\n")
