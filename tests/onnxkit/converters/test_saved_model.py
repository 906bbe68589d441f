"""What a SavedModel says is read without TensorFlow; what is none is one sentence."""

import pytest

from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.converters.saved_model import (
    chosen_signature,
    is_saved_model,
    read_saved_model,
)
from onnxbuild.onnxkit.sources.outline import SourceValue
from tests.onnxkit.converters import saved_models as made


def refused(call, *arguments):
    with pytest.raises(SourceError) as caught:
        call(*arguments)
    assert caught.value.fix
    return caught.value


def test_signatures_and_files_are_read(tmp_path):
    inputs = {"tokens": made.tensor([None, None], made.INT), "image": made.tensor([None, 8, 8])}
    folder = made.write(
        tmp_path / "m",
        made.meta_graph(
            made.INIT,
            made.signature("score", inputs, {"y": made.tensor([None]), "b": made.tensor([])}),
        ),
    )
    found = read_saved_model(folder)
    assert is_saved_model(folder)
    assert (found.tags, [each.name for each in found.files]) == (
        ("serve",),
        ["saved_model.pb", "variables.index"],
    )
    only = found.signatures["score"]
    assert len(found.signatures) == 1
    assert only.inputs == (
        SourceValue("image", "float32", ("", 8, 8)),
        SourceValue("tokens", "int64", ("", "")),
    )
    assert only.outputs == (SourceValue("b", "float32", ()), SourceValue("y", "float32", ("",)))


def test_the_graph_that_serves_is_taken(tmp_path):
    training = made.meta_graph(made.plain("train"), tags=("train",))
    serving = made.meta_graph(made.plain("infer"), tags=("gpu", "serve"))
    found = read_saved_model(made.write(tmp_path / "m", training, serving))
    assert found.tags == ("gpu", "serve")
    assert list(found.signatures) == ["infer"]


def test_two_signatures_are_listed_with_the_key_to_write(tmp_path):
    graph = made.meta_graph(made.plain("encode"), made.plain("decode"))
    outline = read_saved_model(made.write(tmp_path / "m", graph))
    error = refused(chosen_signature, outline, "")
    assert error.what == "m has 2 signatures: decode, encode"
    assert error.fix == "write one of them next to `saved_model`: `signature: decode`"
    assert error.mend == {"model": {"signature": "decode"}}
    assert chosen_signature(outline, "encode").facts["signature"] == "encode"
    error = refused(chosen_signature, outline, "encoder")
    assert error.what == "m has no signature 'encoder'; it has decode, encode"
    assert error.key == ("model", "signature")


def test_what_can_not_be_built_is_refused(tmp_path):
    ragged = made.signature(
        "f", {"x": made.field(1, "x:0") + made.field(5, b"")}, {"y": made.tensor([1])}
    )
    outline = read_saved_model(made.write(tmp_path / "ragged", made.meta_graph(ragged)))
    assert (
        "'x' of the signature 'f' is a composite tensor"
        in refused(chosen_signature, outline, "").what
    )
    empty = read_saved_model(made.write(tmp_path / "empty", made.meta_graph()))
    assert refused(chosen_signature, empty, "").what.startswith("empty has no signature")


def test_a_folder_that_is_none_is_one_sentence(tmp_path):
    (tmp_path / "m").mkdir()
    error = refused(read_saved_model, tmp_path / "m")
    assert error.what == "m is no SavedModel: it holds no saved_model.pb"
    made.write(tmp_path / "m" / "1", made.meta_graph(made.plain()))
    assert refused(read_saved_model, tmp_path / "m").fix == "name the folder in it: `m/1`"
    (tmp_path / "a.keras").touch()
    assert "`model: {keras: a.keras}`" in refused(read_saved_model, tmp_path / "a.keras").fix
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "saved_model.pbtxt").touch()
    assert "in text form" in refused(read_saved_model, tmp_path / "t").what
    with pytest.raises(FileNotFoundError):
        read_saved_model(tmp_path / "gone")


def test_no_damage_is_a_traceback(tmp_path):
    folder = made.write(tmp_path / "m", made.meta_graph(made.plain(), made.plain("other")))
    file = folder / "saved_model.pb"
    whole = file.read_bytes()
    outcomes = set()
    for end in range(len(whole)):
        for content in (whole[:end], whole[:end] + b"\xff" + whole[end + 1 :]):
            file.write_bytes(content)
            try:
                read_saved_model(folder)
                outcomes.add("read")
            except SourceError as error:
                outcomes.add(error.what)
    damaged = "m/saved_model.pb can't be read: it is no SavedModel, or it was cut short"
    assert outcomes == {"read", damaged}
