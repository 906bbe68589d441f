import pytest

from onnxbuild.onnxkit.wheels.content import (
    distribution_name,
    import_name,
    info_folder,
    is_name,
    taken_by,
    wheel_file,
)


@pytest.mark.parametrize(
    ("recipe", "variant", "pattern", "distribution", "package"),
    [
        ("bert", "int8", "", "bert-int8", "bert_int8"),
        ("x", "fp32", "Our.Model-{variant}", "Our.Model-fp32", "our_model_fp32"),
        ("x", "fp32", "class", "class", "class_"),
    ],
)
def test_names_are_those_that_pip_and_python_take(recipe, variant, pattern, distribution, package):
    assert distribution_name(recipe, variant, pattern) == distribution
    assert is_name(distribution)
    assert import_name(distribution) == package
    assert package.isidentifier()


def test_file_and_folder_are_escaped():
    assert wheel_file("Our.Model-fp32", "1.0") == "our_model_fp32-1.0-py3-none-any.whl"
    assert info_folder("Our.Model-fp32", "1.0") == "our_model_fp32-1.0.dist-info"


@pytest.mark.parametrize("name", ["", "a b", "{variant}"])
def test_what_is_no_name(name):
    assert not is_name(name)


@pytest.mark.parametrize(
    ("distribution", "taken"),
    [
        ("numpy", "numpy, which wheels require"),
        ("OnnxRuntime", "onnxruntime, which wheels require"),
        ("bert-int8", ""),
    ],
)
def test_names_of_what_is_installed_with_it_are_taken(distribution, taken):
    assert taken_by(distribution) == taken
