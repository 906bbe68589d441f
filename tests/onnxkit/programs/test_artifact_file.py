"""Programs are reported apart by what is in them, not by their names."""

import zipfile

import pytest

from onnxbuild.onnxkit.programs.artifact_file import program_format


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (["model/code/a.py", "model/constants.pkl", "model/data.pkl"], "torchscript"),
        (["serialized_exported_program.json", "version"], "torch-export"),
        ([], None),
    ],
)
def test_a_program_is_what_lies_in_it(tmp_path, records, expected):
    path = tmp_path / "any.name"
    with zipfile.ZipFile(path, "w") as archive:
        for name in records:
            archive.writestr(name, b"")
    assert program_format(path) == expected


def test_what_is_no_archive_is_no_program(tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1")
    assert program_format(path) is None
    assert program_format(tmp_path / "gone.pt") is None
