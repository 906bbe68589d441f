import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto
from onnx.helper import make_node, make_opsetid

from onnxbuild.onnxkit.ready_onnx.written_out import settle_locales
from tests.onnxkit.models import model, value

TEXTS = np.array(["\u00c0B", "Cd"], object)


@pytest.mark.parametrize("locale", [{}, {"locale": "en_US"}, {"locale": "en_US.UTF-8"}])
def test_the_default_locale_gives_way_to_one_that_is_there(locale):
    made = lowering(**locale)
    settle_locales(made)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    assert session.run(None, {"x": TEXTS})[0].tolist() == ["\u00e0b", "cd"]


def test_a_locale_of_the_file_s_own_stays():
    made = lowering(locale="C")
    settle_locales(made)
    assert made == lowering(locale="C")


def lowering(**attributes):
    node = make_node(
        "StringNormalizer", ["x"], ["y"], case_change_action="LOWER", is_case_sensitive=1,
        **attributes,
    )  # fmt: skip
    ends = [value("x", ["n"], TensorProto.STRING)], [value("y", ["m"], TensorProto.STRING)]
    return model([node], *ends, imports=[make_opsetid("", 17)])
