"""What crosses between a step and a framework's process, without a framework."""

import json
import random

import ml_dtypes
import numpy as np
import pytest

from onnxbuild.features.frontends.jax import jax_arguments
from onnxbuild.onnxkit.converters import child


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float16).reshape(2, 3),
        np.array(True),
        np.array(["text", "größer"]),
        np.arange(3).astype(ml_dtypes.bfloat16),
        np.zeros((0, 2), np.int8),
    ],
)
def test_arrays_come_back_as_they_were(tmp_path, array):
    child.write_arrays(tmp_path / "a.npz", {"a/b": array, "second": np.ones(1)})
    found = child.read_arrays(tmp_path / "a.npz")
    assert list(found) == ["a/b", "second"]
    assert found["a/b"].dtype == array.dtype
    assert found["a/b"].tolist() == array.tolist()


def test_bytes_and_objects_are_texts(tmp_path):
    made = {"b": np.array([b"one", b"two"], object), "s": np.array(["three"], object)}
    child.write_arrays(tmp_path / "a.npz", made)
    found = child.read_arrays(tmp_path / "a.npz")
    assert {name: each.tolist() for name, each in found.items()} == {
        "b": ["one", "two"],
        "s": ["three"],
    }


def refuses(request):
    raise child.Refused(request["what"], "do this", "mine.py:3")


def fails(_request):
    raise ValueError("\n  the first line\nanother")


def lacks(_request):
    import no_such_framework  # noqa: F401


def draws(_request):
    return [random.random(), np.random.rand()]  # noqa: NPY002 - as careless code does


def gives(request):
    return {"n": request["n"] + 1}


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        ("refuses", {"refused": ["wrong", "do this", "mine.py:3"]}),
        ("fails", {"failed": "ValueError: the first line"}),
        ("lacks", {"missing": "no_such_framework"}),
        ("gives", {"made": {"n": 2}}),
    ],
)
def test_whatever_happens_is_an_answer(tmp_path, function, answer, capsys):
    request = {"module": __name__, "function": function, "what": "wrong", "n": 1, "working": "."}
    (tmp_path / child.REQUEST).write_text(json.dumps(request))
    child.main(str(tmp_path))
    assert json.loads((tmp_path / child.ANSWER).read_text()) == answer


def test_a_callable_draws_the_same_in_each_process(tmp_path):
    request = {"module": __name__, "function": "draws", "working": "."}
    (tmp_path / child.REQUEST).write_text(json.dumps(request))
    answers = []
    for _ in range(2):
        child.main(str(tmp_path))
        answers.append((tmp_path / child.ANSWER).read_text())
        draws(request)
    assert answers[0] == answers[1]


MODEL = """\
{imports}

def apply(params, image, scale=1.0):
    return image

def build():
    return {returned}
"""


@pytest.mark.parametrize(
    ("imports", "returned", "found"),
    [
        ("import jax", "apply, {}", ("image",)),
        ("import jax", "make()", ()),
        ("import jax ///", "apply, {}", None),
    ],
)
def test_the_text_of_a_callable_says_its_inputs(imports, returned, found):
    source = MODEL.format(imports=imports, returned=returned).encode()
    assert jax_arguments(source, "build") == found
