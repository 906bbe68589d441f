import sys
from pathlib import Path

import onnxruntime
import pytest

from onnxbuild.onnxkit.host.capture_stderr import captured_stderr
from onnxbuild.onnxkit.host.shared_libraries import missing_of, needed_by

CAPI = Path(onnxruntime.__file__).parent / "capi"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="ELF files are Linux's")


@LINUX
def test_what_a_library_was_linked_with_is_read_from_the_file():
    (module,) = CAPI.glob("onnxruntime_pybind11_state*.so")
    needed = needed_by(module)
    assert "libc.so.6" in needed
    assert all(".so" in name for name in needed)


@LINUX
def test_the_loader_finds_what_is_there_and_names_what_is_not():
    assert missing_of(("libc.so.6", "libnowhere.so.9", "libnowhere.so.9")) == ("libnowhere.so.9",)


def test_a_file_that_is_no_library_needs_nothing(tmp_path):
    for name, content in (("text", b"hello"), ("empty", b""), ("elf", b"\x7fELF\x02\x01")):
        (tmp_path / name).write_bytes(content + b"\0" * 64 * bool(content))
        assert needed_by(tmp_path / name) == ()


def test_what_native_code_writes_to_standard_error_is_captured(capfd):
    with captured_stderr(passed_on=False) as said:
        onnxruntime.InferenceSession  # noqa: B018 - something between
        import os

        os.write(2, b"\x1b[1;31mred\x1b[m and plain\n")
    assert said.text == "red and plain\n"
    assert capfd.readouterr().err == ""
    with captured_stderr():
        os.write(2, b"again\n")
    assert capfd.readouterr().err == "again\n"
