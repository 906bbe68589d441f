"""What a step lacks, and the one command that installs it."""

import pytest

from onnxbuild.adapters.toolchain.missing import missing_member


def test_programs_and_headers_are_named_with_how_to_get_them():
    assert missing_member("<program cmake>", ("/usr/bin",)).what == (
        "the program 'cmake'; there is none in /usr/bin"
    )
    assert "ORT_INCLUDE_DIR" in missing_member("<onnxruntime headers>", ()).fix


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("skl2onnx", "pip install 'onnxbuild[sklearn]'"),
        ("xgboost", "pip install 'onnxbuild[xgboost]'"),
        ("onnxscript", "pip install onnxscript"),
    ],
)
def test_a_package_of_an_extra_is_installed_with_all_of_it(name, fix):
    found = missing_member(name, ())
    assert found.what == f"the package '{name}', which is not installed"
    assert found.fix == fix
