"""What a TensorFlow Lite file says is read without TensorFlow; what is none is one sentence."""

import flatbuffers
import pytest

from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.converters.tflite import read_tflite
from onnxbuild.onnxkit.sources.outline import SourceValue

INT64 = 4


class Writer:
    """A file of TensorFlow Lite, table by table."""

    def __init__(self):
        self.builder = flatbuffers.Builder(1024)

    def table(self, size, **fields):
        """`f3=...`: an offset; `n1=...`: a number of one byte; `w4=...`: of four."""
        self.builder.StartObject(size)
        for key, value in fields.items():
            number = int(key[1:])
            if key[0] == "f":
                self.builder.PrependUOffsetTRelativeSlot(number, value, 0)
            elif key[0] == "n":
                self.builder.PrependInt8Slot(number, value, 0)
            else:
                self.builder.PrependUint32Slot(number, value, 0)
        return self.builder.EndObject()

    def vector(self, values, *, are_tables=False):
        add = self.builder.PrependUOffsetTRelative if are_tables else self.builder.PrependInt32
        self.builder.StartVector(4, len(values), 4)
        for each in reversed(values):
            add(each)
        return self.builder.EndVector()

    def tables(self, values):
        return self.vector(values, are_tables=True)

    def text(self, text):
        return self.builder.CreateString(text)

    def tensor(self, name, shape, signature=None, dtype=0):
        named, sized = self.text(name), self.vector(shape)
        more = {} if signature is None else {"f7": self.vector(signature)}
        return self.table(10, f0=sized, n1=dtype, f3=named, **more)

    def signature(self, key, inputs, outputs, graph=0):
        def maps(several):
            names = [(self.text(name), number) for name, number in several.items()]
            return self.tables([self.table(2, f0=name, w1=number) for name, number in names])

        taken, given, named = maps(inputs), maps(outputs), self.text(key)
        return self.table(5, f0=taken, f1=given, f2=named, w4=graph)

    def file(self, path, *signatures):
        tensors = self.tables(
            [
                self.tensor("serving_default_x:0", [1, 8], [-1, 8]),
                self.tensor("serving_default_ids:0", [1, 3], dtype=INT64),
                self.tensor("StatefulPartitionedCall:0", [1, 2], [-1, 2]),
            ]
        )
        graph = self.table(5, f0=tensors, f1=self.vector([0, 1]), f2=self.vector([2]))
        graphs = self.tables([graph])
        called = self.tables(list(signatures))
        self.builder.Finish(self.table(8, w0=3, f2=graphs, f7=called), b"TFL3")
        path.write_bytes(bytes(self.builder.Output()))
        return path


def refused(path):
    with pytest.raises(SourceError) as caught:
        read_tflite(path)
    assert caught.value.fix
    return caught.value.what


def test_the_names_are_the_signatures(tmp_path):
    writer = Writer()
    signature = writer.signature("serving_default", {"image": 0, "ids": 1}, {"logits": 2})
    found = read_tflite(writer.file(tmp_path / "m.tflite", signature))
    assert found.inputs == (
        SourceValue("image", "float32", ("", 8)),
        SourceValue("ids", "int64", (1, 3)),
    )
    assert found.outputs == (SourceValue("logits", "float32", ("", 2)),)
    assert found.facts["tensors"] == {
        "image": "serving_default_x:0",
        "ids": "serving_default_ids:0",
        "logits": "StatefulPartitionedCall:0",
    }


def test_graphs_of_several_signatures_are_refused(tmp_path):
    writer = Writer()
    two = [writer.signature("encode", {}, {}), writer.signature("decode", {}, {}, graph=1)]
    what = refused(writer.file(tmp_path / "m.tflite", *two))
    assert what == "m.tflite has 2 signatures of graphs of their own: encode, decode"


def test_no_damage_is_a_traceback(tmp_path):
    writer = Writer()
    path = writer.file(tmp_path / "m.tflite", writer.signature("f", {"x": 0}, {"y": 2}))
    whole = path.read_bytes()
    outcomes = set()
    for end in range(8, len(whole)):
        for content in (whole[:end], whole[:end] + b"\xff" + whole[end + 1 :]):
            path.write_bytes(content)
            try:
                read_tflite(path)
                outcomes.add("read")
            except SourceError:
                outcomes.add("refused")
    assert outcomes == {"read", "refused"}
