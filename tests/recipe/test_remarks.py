"""Points whose inputs do not fit into memory are refused with an axis to narrow that works."""

import re

import pytest

from onnxbuild.building.api import Loaded, check_points
from onnxbuild.core.errors import RecipeErrors
from onnxbuild.recipe.checks.remarks import input_bytes, point_faults, point_remarks
from onnxbuild.recipe.load import load_recipes

GIB = 1 << 30
RECIPE = """\
version: 1
name: big
model: torch.nn:Identity
dummy_inputs:
  ids: {dtype: int64, shape: [batch, sequence]}
  mask: {dtype: bool, shape: [batch, past + sequence]}
  past: {dtype: float32, shape: [batch, past]}
dynamic_axes:
  batch: {min: 1, max: MOST, example: 2}
  sequence: {min: 1, max: 512, example: 16}
  past: {min: 0, max: 512, example: 16}
"""


def loaded(folder, most):
    file = folder / "big.yaml"
    file.write_text(RECIPE.replace("MOST", str(most)))
    return load_recipes(file, project=folder).recipes[0]


def test_bytes_are_those_of_all_inputs_sums_included(tmp_path):
    recipe = loaded(tmp_path, 8)
    sizes = {"batch": 3, "sequence": 5, "past": 7}
    assert input_bytes(recipe, sizes) == 3 * (5 * 8 + 12 + 7 * 4)


def test_a_batch_of_a_hundred_million_is_refused_and_the_fix_is_not(tmp_path):
    recipe = loaded(tmp_path, 100_000_000)
    (fault,) = point_faults(recipe, 16 * GIB)
    assert fault.where == "big.yaml:9:19"
    assert fault.what == (
        "point 'max-batch' (batch=100000000, sequence=16, past=16) takes 41.7 GiB for its inputs "
        "alone; 16.0 GiB may be used"
    )
    most = re.fullmatch(r"write `max: (\d+)` for axis 'batch'", fault.fix)
    assert most is not None
    mended = loaded(tmp_path, int(most[1]))
    check_points(Loaded({tmp_path: (mended,)}, {}), 16 * GIB)
    with pytest.raises(RecipeErrors):
        check_points(Loaded({tmp_path: (recipe,)}, {}), 16 * GIB)


def test_a_gigabyte_of_inputs_is_reported(tmp_path):
    (remark,) = point_remarks(loaded(tmp_path, 10_000_000))
    assert (
        "big.yaml:9:19: point 'max-batch' (batch=10000000, sequence=16, past=16) takes 2.1 GiB"
        in str(remark)
    )
    assert not list(point_remarks(loaded(tmp_path, 64)))
