"""A plug-in that ends its process, or closes its streams, is a fault and no end of the run."""

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
    fault = load_file(tmp_path, "mine.py").fault
    assert what in fault.what
    assert "mine.py" in fault.where


def test_what_raises_is_reported_by_the_import_that_counts(tmp_path, capfd):
    (tmp_path / "mine.py").write_text("print('once')\nraise ValueError('no')\n")
    assert "raises ValueError when it is imported: no" in load_file(tmp_path, "mine.py").fault.what
    assert capfd.readouterr() == ("", "once\n")
