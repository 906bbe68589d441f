import functools
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from onnxbuild.core.entrypoint import Entrypoint
from onnxbuild.core.errors import StepError, UndeclaredInputError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.reference_feeds import reference_feeds
from onnxbuild.onnxkit.data.user_code import (
    an,
    call_entrypoint,
    call_user,
    frontend_fix,
    frontend_of,
    iterate_user,
    misfit,
    user_line,
)
from tests.late_imports import Late


def raised_by(file, source):
    """What a function `run` of a file raises."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)
    names = {}
    exec(compile(source, str(file), "exec"), {"json": json}, names)
    with pytest.raises(ValueError, match=r".") as caught:
        names["run"]()
    return caught.value


def test_the_line_is_shown_relative_to_the_outermost_folder_of_the_import_path(tmp_path):
    file = tmp_path / "models" / "tiny.py"
    error = raised_by(file, "def run():\n    raise ValueError('boom')\n")
    folders = [str(file.parent), str(tmp_path), "/usr/lib/elsewhere", ""]
    assert user_line(error, folders) == "models/tiny.py:2"
    assert user_line(error, [f"{tmp_path}/mod"]) == f"{file}:2"


def test_what_the_users_line_calls_in_a_library_is_reported_at_the_users_line(tmp_path):
    file = tmp_path / "tiny.py"
    error = raised_by(file, "def run():\n    return json.loads('{')\n")
    assert user_line(error, [str(tmp_path)]) == "tiny.py:2"


def test_an_error_without_a_line_of_the_users_is_reported_at_its_step():
    with pytest.raises(StepError, match=r"m\.py:load raised JSONDecodeError") as caught:
        call_user(lambda: json.loads("{"), "m.py:load", "tiny:export")
    assert "onnxkit/data/test_user_code.py:" in caught.value.where  # the lambda's own
    with pytest.raises(StepError) as caught:
        call_user(json.JSONDecoder().decode, "m.py:load", "tiny:export")
    assert caught.value.where == "tiny:export"


def test_whose_code_raised_is_reported_and_what_a_call_gives(tmp_path):
    def call():
        raise_by_users(tmp_path / "data.py")

    with pytest.raises(StepError) as caught:
        call_user(call, "data.py:feeds", "tiny:calibrate", owner="the data's")
    assert caught.value.fix == "run it by itself: the error is raised by the data's own code"
    with pytest.raises(StepError) as caught:
        call_user(
            json.JSONDecoder().decode, "m.py:score", "tiny:evaluate", takes="(outputs, labels)"
        )
    assert caught.value.fix == "let it take what it is called with: (outputs, labels)"


def test_a_type_error_inside_the_callable_is_its_own():
    with pytest.raises(StepError, match="raised TypeError: can only concatenate") as caught:
        call_entrypoint(lambda sed: "a" + sed, Entrypoint("m.py:load", args={"sed": 1}), "tiny:x")
    assert "run it by itself" in caught.value.fix


def raise_by_users(file):
    raise raised_by(file, "def run():\n    raise ValueError('boom')\n")


def test_errors_that_speak_for_themselves_pass():
    def refused():
        raise UndeclaredInputError("it opens a file", fix="declare it")

    with pytest.raises(UndeclaredInputError, match="it opens a file"):
        call_user(refused, "m.py:load", "tiny:export")


@pytest.mark.parametrize(("value", "said"), [(3, "an int"), (int, "a type")])
def test_values_are_reported_with_their_article(value, said):
    assert an(value) == said


def load(width, *, seed=0, depth=1):
    """What a recipe names."""


def score(outputs, labels, top=1):
    """A metric."""


@pytest.mark.parametrize(
    ("function", "args", "given", "what", "fix"),
    [
        (load, {"width": 1, "sed": 2}, (), "has no parameter 'sed'",
         "write `seed` in place of `sed` in its `args`"),
        (lambda a, b: None, {}, (), "needs 'a' and 'b', which its `args` don't give",
         "write `args: {a: VALUE, b: VALUE}` where the recipe names it, or give 'a' and 'b' defaults"),
        (functools.partial(load, 1), {"sedd": 1}, (), "has no parameter 'sedd'",
         "write `seed` in place of `sedd` in its `args`"),
    ],
)  # fmt: skip
def test_the_difference_and_what_to_write(function, args, given, what, fix):
    found = misfit(function, args, given)
    assert found is not None
    assert (found.what, found.fix) == (what, fix)


@pytest.mark.parametrize(
    ("function", "args", "given"),
    [(load, {"width": 1, "depth": 2}, ()), (score, {"top": 2}, (1, 2)), (iter, {"x": 1}, ())],
)
def test_arguments_that_fit_and_callables_that_do_not_say(function, args, given):
    assert misfit(function, args, given) is None


INPUTS = (DummyInput("x", "float32", (2,)),)


def one_array():
    buffer = np.zeros(2, np.float32)
    for number in range(3):
        buffer[:] = number
        yield {"x": buffer}


def one_tensor():
    buffer = torch.zeros(2)
    for number in range(3):
        buffer.fill_(number)
        yield {"x": buffer}


def one_mapping():
    sample = {}
    for number in range(3):
        sample["x"] = np.full(2, number, np.float32)
        yield sample


@pytest.mark.parametrize("samples", [one_array, one_tensor, one_mapping])
def test_a_generator_may_fill_the_same_arrays_for_each_sample(samples):
    context = SimpleNamespace(load=lambda _: samples, where="demo:reference")
    found = reference_feeds(
        context, INPUTS, (), points=(), seed=0, samples=Entrypoint("data.py:rows"), max_samples=16
    )
    values = [feeds["x"].tolist() for name, _, feeds in found if name.startswith("sample-")]
    assert values == [[0, 0], [1, 1], [2, 2]]


def pairs():
    labels, names = np.zeros(2, np.int64), []
    for number in range(3):
        labels[:] = number
        names[:] = [number]
        yield {"x": labels}, [labels, names, "text", None, number]


def test_labels_of_a_batch_are_not_those_of_the_last():
    context = SimpleNamespace(load=lambda _: pairs, where="demo:evaluate")
    kept = list(iterate_user(context, Entrypoint("data.py:pairs")))
    for number, (feeds, (labels, names, *rest)) in enumerate(kept):
        assert feeds["x"].tolist() == labels.tolist() == [number, number]
        assert names == [number]
        assert rest == ["text", None, number]


xgboost, linear_model, pipeline = (
    Late("xgboost"),
    Late("sklearn.linear_model"),
    Late("sklearn.pipeline"),
)


@pytest.mark.parametrize(
    ("returned", "frontend"),
    [
        (lambda: torch.nn.Linear(1, 1), "pytorch"),
        (lambda: Path("model.onnx"), "onnx"),
        (lambda: pipeline.make_pipeline(xgboost.XGBClassifier()), "sklearn"),
        (lambda: linear_model.LogisticRegression, ""),
        (lambda: 3, ""),
    ],
)
def test_the_type_decides_the_frontend(returned, frontend):
    value = returned()
    assert frontend_of(value) == frontend
    assert frontend_fix(value, "-") == (f"write `frontend: {frontend}`" if frontend else "-")
