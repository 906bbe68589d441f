import numpy as np
import pytest
import torch

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DTYPES, Axis, DummyInput
from onnxbuild.onnxkit.data.feed_checks import (
    LEAST_INSTEAD,
    not_finite,
    odd_kind,
    odd_values,
    refuse_nan,
)
from onnxbuild.onnxkit.data.feeds import check_feeds, make_feeds, rows_of, sizes_of

IDS = DummyInput("ids", "int64", ("batch", "sequence"), low=5, high=9)
MASK = DummyInput("mask", "int64", ("batch", "sequence"), fill=1)
PIXELS = DummyInput("pixels", "float32", ("batch", 3))
SIZES = {"batch": 2, "sequence": 7}


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_can_be_made(dtype):
    feed = make_feeds([DummyInput("x", dtype, (50,))], {}, 0)["x"]
    held = {"bfloat16": "float32", "string": feed.dtype}
    assert feed.dtype == np.dtype(held.get(dtype, dtype))
    assert len(np.unique(feed)) > 1


def test_an_inputs_values_depend_on_its_name_and_the_seed_alone():
    alone = make_feeds([IDS], SIZES, 0)["ids"]
    among = make_feeds([PIXELS, MASK, IDS], SIZES, 0)["ids"]
    assert np.array_equal(alone, among)
    assert not np.array_equal(alone, make_feeds([IDS], SIZES, 1)["ids"])


def test_values_are_the_same_on_every_machine():
    assert make_feeds([IDS], SIZES, 0)["ids"].tolist() == [
        [5, 8, 7, 6, 7, 7, 5],
        [7, 6, 5, 7, 7, 5, 5],
    ]


def test_ranges_are_kept():
    ids = make_feeds([IDS], {"batch": 100, "sequence": 10}, 0)["ids"]
    assert (ids.min(), ids.max()) == (5, 8)
    uniform = DummyInput("x", "float32", (1000,), low=-1, high=3)
    floats = make_feeds([uniform], {}, 0)["x"]
    assert -1 <= floats.min() < -0.9
    assert 2.9 < floats.max() < 3
    assert set(np.unique(make_feeds([DummyInput("x", "int32", (99,))], {}, 0)["x"])) == {0, 1}
    assert make_feeds([DummyInput("x", "uint8", (999,))], {}, 0)["x"].max() > 200


def test_tensors_and_arrays_are_taken_in_the_declared_order():
    ids = torch.ones(2, 4, dtype=torch.int64)
    feeds = check_feeds({"mask": np.ones((2, 4), np.int64), "ids": ids}, [IDS, MASK], "samples")
    assert list(feeds) == ["ids", "mask"]
    assert all(isinstance(feed, np.ndarray) for feed in feeds.values())
    assert sizes_of(feeds, [IDS, MASK], "samples") == {"batch": 2, "sequence": 4}


@pytest.mark.parametrize(
    ("feeds", "said", "fix"),
    [
        ([1], "found a list; expected a mapping", "yield {'pixels': ...}"),
        ({"pixel": np.ones((1, 3))},
         "found an input 'pixel'; expected pixels; 'pixels' is missing",
         "rename 'pixel' to 'pixels'"),
        ({"pixels": [[1, 2, 3], [4]]}, "'pixels' is no array: ", "as by padding"),
        ({"pixels": None}, "'pixels' holds objects (NoneType)", "into numbers"),
        ({"pixels": np.ones(3, np.float32)}, "shape [3]; expected [batch, 3]", "`array[None]`"),
        ({"pixels": np.ones((), np.float32)}, "shape []; expected [batch, 3]", "give it 2 axes"),
        ({"pixels": np.full((1, 3), np.nan, np.float32)},
         "input 'pixels' holds 3 NaN among 3 values, the first at [0, 0]", "clean the data"),
        ({"pixels": np.ones((9, 3), np.float32)}, "'batch' has size 9; expected 1 to 8", "widen"),
    ],
)  # fmt: skip
def test_feeds_that_are_not_as_declared_are_refused(feeds, said, fix):
    with pytest.raises(StepError) as caught:
        check_feeds(feeds, [PIXELS], "m:reference (sample 0)", [Axis("batch", 1, 8, 2)])
    assert said in caught.value.what
    assert fix in caught.value.fix
    assert caught.value.where == "m:reference (sample 0)"


def test_an_infinity_below_zero_passes_as_masks_hold_it():
    mask = np.array([[0, -np.inf, 0]], np.float32)
    assert check_feeds({"pixels": mask}, [PIXELS], "x")["pixels"][0, 1] == -np.inf


def test_missing_values_pass_where_the_recipe_says_that_there_may_be_some():
    rows = np.array([[0, np.nan, 1]], np.float32)
    with pytest.raises(StepError) as caught:
        check_feeds({"pixels": rows}, [PIXELS], "x")
    assert "write `missing: 0.1` below `pixels` in `dummy_inputs`" in caught.value.fix
    sparse = DummyInput("pixels", "float32", ("batch", 3), missing=0.25)
    assert np.isnan(check_feeds({"pixels": rows}, [sparse], "x")["pixels"]).sum() == 1
    with pytest.raises(StepError, match="holds 1 inf among 3"):
        check_feeds(
            {"pixels": rows * [[1, 1, np.inf]]},
            [DummyInput("pixels", "float64", ("batch", 3), missing=0.25)],
            "x",
        )
    drawn = make_feeds([sparse], {"batch": 400}, 0)["pixels"]
    whole = make_feeds([PIXELS], {"batch": 400}, 0)["pixels"]
    gone = np.isnan(drawn)
    assert 0.2 < gone.mean() < 0.3
    assert (drawn[~gone] == whole[~gone]).all()


def test_names_that_go_together_are_paired_by_likeness():
    feeds = {"attention": 1, "input_id": 2, "extra": 3}
    with pytest.raises(StepError) as caught:
        check_feeds(feeds, [IDS, MASK, DummyInput("input_ids", "int64", ())], "x")
    assert "rename 'input_id' to 'input_ids'" in caught.value.fix
    assert caught.value.fix.count("rename") == 3
    with pytest.raises(StepError) as caught:
        check_feeds({"mask": 1, "ids_": 2, "more": 3}, [IDS, MASK], "x")
    assert caught.value.fix == "rename 'ids_' to 'ids', leave 'more' out"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (np.ones((1, 3)), "write `.astype('float32')`, or"),
        ([[1.0, 2.0, 3.0]], "write `numpy.array(..., 'float32')`, or"),
    ],
)
def test_a_cast_is_one_that_the_value_has(value, written):
    with pytest.raises(StepError, match=r"has dtype b?float\d\d; expected float32") as caught:
        check_feeds({"pixels": value}, [DummyInput("pixels", "float32", (1, 3))], "x")
    assert caught.value.fix.startswith(written)


def test_a_list_fills_row_by_row_again_and_again():
    rows = DummyInput("x", "int64", ("batch", 2), fill=(1, 0))
    assert make_feeds([rows], {"batch": 3}, 0)["x"].tolist() == [[1, 1], [0, 0], [1, 1]]
    texts = DummyInput("x", "string", ("batch",), fill=("to be", "or not"))
    assert make_feeds([texts], {"batch": 3}, 0)["x"].tolist() == ["to be", "or not", "to be"]


def test_a_mask_has_a_full_row_and_shorter_ones_padded_on_one_side():
    right = DummyInput("mask", "int64", ("batch", "sequence"), mask="right")
    left = DummyInput("other", "bool", ("batch", "sequence"), mask="left")
    sizes = {"batch": 6, "sequence": 9}
    feeds = make_feeds([right, left], sizes, 0)
    lengths = feeds["mask"].sum(1)
    assert lengths[0] == 9
    assert all(1 <= length < 9 for length in lengths[1:])
    assert len(set(lengths.tolist())) > 2
    assert all((np.diff(row) <= 0).all() for row in feeds["mask"])
    assert all((np.diff(row.astype(int)) >= 0).all() for row in feeds["other"])
    assert (feeds["other"].sum(1) == lengths).all(), "one batch has one length a row"
    assert np.array_equal(make_feeds([right], sizes, 0)["mask"], feeds["mask"])
    assert not np.array_equal(make_feeds([right], sizes, 1)["mask"], feeds["mask"])


def test_bfloat16_is_held_as_the_float32_it_rounds_to():
    x = DummyInput("x", "bfloat16", (500,), low=-3, high=3)
    made = make_feeds([x], {}, 0)["x"]
    values = np.linspace(-3, 3, 500, dtype=np.float32)
    given = check_feeds({"x": values}, [x], "samples")["x"]
    for each in (made, given):
        assert each.dtype == np.float32
        assert np.array_equal(torch.from_numpy(each).bfloat16().float().numpy(), each)
    assert np.array_equal(given, torch.from_numpy(values).bfloat16().float().numpy())
    tensor = torch.from_numpy(values).bfloat16()
    assert np.array_equal(check_feeds({"x": tensor}, [x], "samples")["x"], given)
    with pytest.raises(StepError) as caught:
        check_feeds({"x": values.astype(np.float64)}, [x], "samples")
    assert caught.value.fix.startswith("write `.astype('float32')` (numpy has no bfloat16)")


def test_strings_are_taken_from_lists_and_arrays_and_nothing_else_is():
    text = DummyInput("text", "string", ("batch",))
    for given in (["to be", "or"], np.array(["to be", "or"]), np.array(["to be", "or"], object)):
        found = check_feeds({"text": given}, [text], "samples")["text"]
        assert found.dtype.kind == "U"
        assert found.tolist() == ["to be", "or"]
    with pytest.raises(StepError, match="input 'text' holds bytes; expected strings"):
        check_feeds({"text": np.array([b"a"])}, [text], "samples")
    with pytest.raises(StepError, match="input 'text' holds int; expected strings"):
        check_feeds({"text": [1]}, [text], "samples")
    with pytest.raises(StepError, match="a string that ends in NUL"):
        check_feeds({"text": np.array(["a\0"], object)}, [text], "samples")
    with pytest.raises(StepError, match=r"has shape \[1, 1\]; expected \[batch\]"):
        check_feeds({"text": [["a"]]}, [text], "samples")


SCALE = DummyInput("scale", "float32", ())
TABLE = DummyInput("table", "float32", (1000, 5))
IMAGES = DummyInput("images", "float32", ("batch", 3))
FIXED = DummyInput("fixed", "float32", (4, 3))


def counted(*inputs, made=(), batch=8):
    def shape(each):
        return tuple(batch if size == "batch" else size for size in each.shape)

    feeds = {each.name: np.zeros(shape(each), np.float32) for each in inputs}
    return rows_of(feeds, inputs, made)


def test_rows_are_those_of_the_first_input_with_a_dynamic_first_axis():
    assert counted(IMAGES, TABLE) == 8
    assert counted(SCALE, IMAGES) == 8
    assert counted(TABLE, FIXED, IMAGES) == 8


def test_rows_that_all_outputs_and_an_input_share_come_first():
    assert counted(TABLE, FIXED, made=(4, 4)) == 4
    assert counted(TABLE, IMAGES, made=(4, 8)) == 8
    assert counted(TABLE, IMAGES, made=(3,)) == 8


def test_rows_without_any_dynamic_axis_are_those_of_the_first_input_that_has_an_axis():
    assert counted(SCALE, FIXED, TABLE) == 4
    assert counted(SCALE) == 1


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([[0, 1], [2, 3]], ""),
        ([[0, -np.inf], [np.inf, 3]], "'x' holds 1 inf among 4 values, at [1, 0]"),
        (np.nan, "'x' is NaN"),
    ],
)
def test_the_worst_kind_is_reported_with_its_count_and_first_place(values, said):
    assert odd_values("x", np.array(values, np.float32)) == said


def test_whole_numbers_and_text_are_finite():
    assert odd_kind(np.array([1])) == odd_kind(np.array(["inf"])) == ""


def test_an_input_an_output_and_a_projection_each_get_the_blame_that_is_theirs():
    fine, lost = {"y": np.zeros(1)}, {"y": np.array([np.nan])}
    masked = {"x": np.array([-np.inf])}
    assert not_finite(lost, masked, 3, "here").fix == LEAST_INSTEAD
    assert "overflow" in not_finite(lost, {"x": np.zeros(1)}, 3, "here").fix
    assert "projection" in not_finite(fine, {"x": np.zeros(1)}, 3, "here").fix
    assert not_finite(lost, masked, 3, "here").what.startswith("item 3 of the data gives")


def test_nan_in_what_is_compared_with_is_refused_by_name_and_point():
    outputs = {"a": np.ones(2), "n": np.array([1]), "b": np.array([1.0, np.nan])}
    what = r"output 'b' of the PyTorch model itself holds 1 NaN among 2 elements at point 'min'"
    with pytest.raises(StepError, match=what):
        refuse_nan(outputs, "min", "m:reference", whose="PyTorch model")
    refuse_nan({"a": np.array([np.inf])}, "min", "m:reference")
