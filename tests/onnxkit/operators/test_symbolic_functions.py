import sys

import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.export.torch_module import call_forward
from onnxbuild.onnxkit.operators.custom_operators import symbolic_functions
from tests.steps import modules

X = {"x": np.ones((2, 4), np.float32)}


def found(name):
    return symbolic_functions(lambda: call_forward(modules.load(name), X, (), "m:export"))


def test_functions_that_forward_applies_are_found_by_any_name():
    assert found("HasSymbolic") == ("SineByHand",)
    assert found("AppliesByAnotherName") == ("Swish",)
    assert found("HasWrongSymbolic") == ("NotSwish",)


def test_what_forward_does_not_apply_is_not():
    assert found("Nested") == ()


def test_the_profiling_hook_is_as_before_even_where_forward_raises():
    with pytest.raises(StepError, match="invalid for input of size 8"):
        found("ReshapesToThree")
    assert sys.getprofile() is None
