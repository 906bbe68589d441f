"""Files of every format that programs read, each with one number in it."""

import gzip
import io
import json
import pickle
import sqlite3
import struct
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    """A file that says a number.

    Attributes:
        kind: Its format, a key of `FORMATS`.
        number: Of two digits, so that another one makes a file of the same size.
        text: For `py` and `text`: the text, with {n} for the number.
        comments: How many comments follow, for `py`.
    """

    kind: str
    number: int
    text: str = "NUMBER = {n}\n"
    comments: int = 0

    def content(self) -> bytes:
        return FORMATS[self.kind](self)


def _text(file: File) -> bytes:
    comments = "".join(f"# remark {n}\n" for n in range(file.comments))
    return (file.text.replace("{n}", str(file.number)) + comments).encode()


def _json(file: File) -> bytes:
    return json.dumps({"number": file.number}).encode()


def _npy(file: File) -> bytes:
    import numpy as np

    out = io.BytesIO()
    np.save(out, np.int64(file.number))
    return out.getvalue()


def _npz(file: File) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr(zipfile.ZipInfo("number.npy"), _npy(file))
    return out.getvalue()


def _zip(file: File) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr(zipfile.ZipInfo("number.txt"), str(file.number))
        made.writestr(zipfile.ZipInfo("zipped.py"), f"NUMBER = {file.number}\n")
    return out.getvalue()


def _tar(file: File) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        member = tarfile.TarInfo("number.txt")
        member.size = len(str(file.number))
        made.addfile(member, io.BytesIO(str(file.number).encode()))
    return out.getvalue()


def _sqlite(file: File) -> bytes:
    with sqlite3.connect(":memory:") as made:
        made.execute("create table t (number)")
        made.execute("insert into t values (?)", (file.number,))
        made.commit()
        if hasattr(made, "serialize"):
            return made.serialize()
    raise NotImplementedError("sqlite3.Connection.serialize is of Python 3.11")


def _safetensors(file: File) -> bytes:
    header = {"number": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + struct.pack("<q", file.number)


def _tokens(file: File) -> bytes:
    vocabulary = {"word": 0, f"word{file.number}": file.number}
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": None,
            "post_processor": None,
            "decoder": None,
            "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "word"},
        }
    ).encode()


def _torch(file: File) -> bytes:
    import torch

    out = io.BytesIO()
    torch.save({"number": torch.tensor(file.number)}, out)
    return out.getvalue()


FORMATS: Mapping[str, Callable[[File], bytes]] = {
    "py": _text,
    "text": _text,
    "txt": lambda file: str(file.number).encode(),
    "json": _json,
    "npy": _npy,
    "npz": _npz,
    "zip": _zip,
    "tar": _tar,
    "db": _sqlite,
    "safetensors": _safetensors,
    "tokens": _tokens,
    "pt": _torch,
    "raw": lambda file: struct.pack("<q", file.number),
    "pickle": lambda file: pickle.dumps(file.number),
    "gz": lambda file: gzip.compress(str(file.number).encode(), mtime=0),
    "csv": lambda file: f"number\n{file.number}\n".encode(),
    "ini": lambda file: f"[law]\nnumber = {file.number}\n".encode(),
    "toml": lambda file: f"number = {file.number}\n".encode(),
}
