"""PyTorch's archives written anew: the same records, in an order of their own."""

import zipfile

import torch

from onnxbuild.onnxkit.programs.archives import rewrite_archive, sort_constants

CODE = b"""class Embedding(Module):
  weight : Tensor
  training : bool
  sparse : Final[bool] = False
  max_norm : Final[NoneType] = None
  def forward(self: __torch__.Embedding,
    x: Tensor) -> Tensor:
    return x
"""


def test_constants_are_sorted_and_nothing_else_moves():
    other = CODE.replace(b"  sparse : Final[bool] = False\n", b"").replace(
        b"= None\n", b"= None\n  sparse : Final[bool] = False\n"
    )
    assert other != CODE
    assert sort_constants(CODE) == sort_constants(other) == other
    assert sort_constants(b"") == b""
    assert sort_constants(CODE + b"  b : Final[int] = 1\n  a : Final[int] = 2\n").endswith(
        b"  a : Final[int] = 2\n  b : Final[int] = 1\n"
    )


def test_the_name_of_the_file_and_the_order_of_writing_do_not_count(tmp_path):
    made = []
    for name, keys in (("one", ("a", "b")), ("another", ("b", "a"))):
        raw = tmp_path / f"{name}.pt"
        with raw.open("wb") as file:
            writer = torch._C.PyTorchFileWriter(file)
            for key in keys:
                writer.write_record(key, key.encode() * 9, 9)
            writer.write_record("code/m.py.debug_pkl", raw.name.encode(), len(raw.name))
            writer.write_end_of_file()
        target = tmp_path / f"{name}.out"
        rewrite_archive(raw, target, keep=lambda key: key != "b")
        made.append(target.read_bytes())
        records = [each.partition("/")[2] for each in zipfile.ZipFile(target).namelist()]
        assert "a" in records
        assert "b" not in records
        assert not [each for each in records if each.endswith("debug_pkl")]
    assert made[0] == made[1]
