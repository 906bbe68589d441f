"""Prompts are ids that the model has room for."""

import numpy as np
import pytest

from onnxbuild.core.entrypoint import DUMMY_DATA, FILE_DATA
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.onnxkit.data.greedy import roles_of
from onnxbuild.onnxkit.data.prompts import read_prompts
from tests.fakes.step_context import FolderContext
from tests.onnxkit.data.test_states import AXES, INPUTS


def prompts(tmp_path, array=None, *, tokens=4):
    data = Entrypoint(DUMMY_DATA)
    if array is not None:
        np.save(tmp_path / "prompt.npy", array)
        data = Entrypoint(FILE_DATA, files=(str(tmp_path / "prompt.npy"),))
    context = FolderContext(None, tmp_path)
    return read_prompts(context, data, roles_of(INPUTS), AXES, count=3, tokens=tokens, seed=0)


def test_random_prompts_have_ids_that_are_declared_and_different_lengths(tmp_path):
    found = prompts(tmp_path)
    assert len({len(each) for each in found}) == 3
    assert all(0 <= each.min() <= each.max() < 9 for each in found)
    assert all(np.array_equal(*pair) for pair in zip(found, prompts(tmp_path), strict=True))


def test_a_file_is_a_prompt(tmp_path):
    (found,) = prompts(tmp_path, np.array([3, 1], np.int32))
    assert (found.tolist(), found.dtype) == ([3, 1], np.int64)


@pytest.mark.parametrize(
    ("array", "tokens", "said", "fix"),
    [
        (np.ones(9, int), 4, "the prompt has 9 tokens; axis 'sequence' takes 1 to 8", "max: 9"),
        (np.ones(8, int), 10, "the state holds 17; axis 'past' takes 0 to 16", "past: {max: 17}"),
        (np.ones((1, 3), int), 4, "expected ids of tokens, shape", "yield a list of ints"),
        (np.ones(3), 4, "dtype float64", "yield a list of ints"),
        (np.ones(0, int), 4, "shape \\[0\\]", "yield a list of ints"),
    ],
)
def test_a_prompt_that_does_not_fit_is_refused_with_what_to_write(
    array, tokens, said, fix, tmp_path
):
    with pytest.raises(StepError, match=said) as caught:
        prompts(tmp_path, array, tokens=tokens)
    assert fix in str(caught.value)
