"""Errors say what, where and what to type, and survive a process boundary."""

import pickle

import pytest

from onnxbuild.core import errors


def test_an_error_reads_as_place_fault_and_fix():
    error = errors.StepError("opset is 99", where="a.yaml:3:4", fix="write `18`")
    assert str(error) == "a.yaml:3:4: opset is 99\n  fix: write `18`"
    assert str(errors.BuildError("alone")) == "alone"
    assert (
        str(errors.StepError("m.py:load is no function", where="m.py:load"))
        == "m.py:load is no function"
    )


@pytest.mark.parametrize(
    ("kind", "code"),
    [(errors.BuildError, 1), (errors.StoreError, 1), (errors.UndeclaredInputError, 5)],
)
def test_each_error_has_its_exit_code_and_can_be_pickled(kind, code):
    error = pickle.loads(pickle.dumps(kind("what", where="where", fix="fix")))
    assert type(error) is kind
    assert (error.what, error.where, error.fix, error.exit_code) == ("what", "where", "fix", code)


def test_all_faults_of_a_recipe_are_one_error():
    both = errors.RecipeErrors(
        [errors.RecipeError("one", where="a:1:1"), errors.RecipeError("two")]
    )
    assert (both.what, both.exit_code) == ("2 faults in the recipe", 2)
    assert str(pickle.loads(pickle.dumps(both))) == "a:1:1: one\ntwo"


def test_did_you_mean_names_the_nearest_or_nothing():
    assert errors.did_you_mean("opsett", ["opset", "outputs"]) == "did you mean 'opset'?"
    assert errors.did_you_mean("xyz", ["opset"]) == ""
