"""What a step lacks, and the one command that installs it."""

import pytest

from onnxbuild.adapters.toolchain.missing import missing_member


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
