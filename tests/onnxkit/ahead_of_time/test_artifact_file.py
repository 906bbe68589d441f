from onnxbuild.onnxkit.ahead_of_time.artifact_file import loaded_bytes


def test_the_description_of_an_artifact_is_not_counted_as_the_model(tmp_path):
    (tmp_path / "model.ort").write_bytes(b"x" * 10)
    assert loaded_bytes(tmp_path) == 10
    (tmp_path / "artifact.json").write_text("{}")
    assert loaded_bytes(tmp_path) == 10
