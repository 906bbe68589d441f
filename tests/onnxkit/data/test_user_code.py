import json

import pytest

from onnxbuild.core.entrypoint import Entrypoint
from onnxbuild.core.errors import StepError, UndeclaredInputError
from onnxbuild.onnxkit.data.user_code import an, call_entrypoint, call_user, user_line


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
