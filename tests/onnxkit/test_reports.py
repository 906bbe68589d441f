import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.ahead_of_time import artifact_file as ahead_of_time
from onnxbuild.onnxkit.programs import artifact_file as programs
from onnxbuild.onnxkit.reports import write_report


def test_a_number_that_json_lacks_is_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_report(tmp_path, {"a": float("nan")})


@pytest.mark.parametrize("description", [programs, ahead_of_time])
def test_a_format_of_a_plug_in_that_describes_no_model_is_named_with_what_to_call(
    description, tmp_path
):
    with pytest.raises(StepError, match=f"wrote no {description.DESCRIPTION_FILE}") as caught:
        description.read_description(tmp_path)
    assert f"`write_description` of {description.__name__}" in caught.value.fix
