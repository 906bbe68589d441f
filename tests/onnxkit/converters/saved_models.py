"""SavedModels without TensorFlow: their protobuf, field by field, as tf.saved_model.save writes it."""

from pathlib import Path

FLOAT, INT, STRING = 1, 9, 7


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number, value):
    """A number, or what has a length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def shape(sizes):
    """None for an unknown rank; None among the sizes for one that varies."""
    if sizes is None:
        return field(3, 1)
    return b"".join(field(2, field(1, -1 if each is None else each)) for each in sizes)


def tensor(sizes, dtype=FLOAT):
    return field(1, "name:0") + field(2, dtype) + field(3, shape(sizes))


def signature(key, inputs, outputs):
    """As an entry of signature_def; inputs and outputs: name -> TensorInfo."""
    body = b"".join(
        field(number, field(1, name) + field(2, info))
        for number, each in ((1, inputs), (2, outputs))
        for name, info in each.items()
    )
    return field(5, field(1, key) + field(2, body + field(3, "tensorflow/serving/predict")))


def meta_graph(*signatures, tags=("serve",)):
    """With a graph that no reader of signatures parses."""
    info = field(1, b"".join(field(4, tag) for tag in tags) + field(5, "2.21.0"))
    return field(2, info + field(2, b"\xff" * 100) + b"".join(signatures))


def write(folder: Path, *graphs: bytes) -> Path:
    """The folder of a SavedModel."""
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(field(1, 1) + b"".join(graphs))
    (folder / "variables" / "variables.index").write_bytes(b"index")
    return folder


INIT = signature("__saved_model_init_op", {}, {"__saved_model_init_op": tensor([])})


def plain(key="serving_default", **outputs):
    """A signature of one input, `x`."""
    return signature(key, {"x": tensor([None, 4])}, outputs or {"y": tensor([None, 2])})
