"""Archives that somebody else made: refused by their headers, before a file is written."""

import io
import os
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from onnxbuild.core.errors import NotReproducibleError
from onnxbuild.release_format.opened import opened


def member(name: str, content: bytes = b"", **values: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in values.items():
        setattr(info, key, value)
    return info, content


def archive(path: Path, *members: tuple[tarfile.TarInfo, bytes], **options: object) -> Path:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT, **options) as file:  # type: ignore[call-overload]
        for info, content in members:
            file.addfile(info, io.BytesIO(content))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(NotReproducibleError) as caught, opened(path):
        raise AssertionError("it is opened")
    return str(caught.value)


@pytest.mark.parametrize(
    "name", [".git/config", "a/.envrc", "recipe/conftest.py", "a/git~1/config"]
)
def test_a_file_that_a_tool_would_run_by_itself_is_in_no_archive(tmp_path, name):
    said = refusal(archive(tmp_path / "x.tar", member(f"net-1/{name}", b"x")))
    assert f"'{name}' " in said
    assert said.partition("\n")[0].endswith("no release holds such a thing")


@pytest.mark.parametrize("name", ["a/" * 1500 + "b", "a/" * 100_000 + "b"])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE])
def test_a_path_that_is_deeper_than_any_release_is_refused_by_its_header(tmp_path, name, kind):
    said = refusal(archive(tmp_path / "x.tar", member(f"net-1/{name}", type=kind)))
    assert "a path has at most 32 and 1,024" in said
    assert len(said) < 500


def test_headers_take_no_more_memory_than_those_of_a_release(tmp_path):
    """A record of 2 GiB in a header, of which the disk holds nothing."""
    path = tmp_path / "x.tar"
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 2 << 30
    path.write_bytes(header.tobuf(tarfile.USTAR_FORMAT))
    os.truncate(path, 4 << 30)
    tracemalloc.start()
    with pytest.raises(Exception, match="more than 33,554,432 bytes"), opened(path):
        pass
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()


def test_a_global_header_is_copied_to_no_member(tmp_path):
    members = [member(f"net-1/{number}") for number in range(3)]
    said = refusal(archive(tmp_path / "x.tar", *members, pax_headers={"comment": "x"}))
    assert "is neither a file nor a folder" in said


@pytest.mark.slow
def test_more_members_than_a_release_has_are_not_unpacked(tmp_path):
    header, _ = member("net-1/a", type=tarfile.DIRTYPE)
    (tmp_path / "x.tar").write_bytes(header.tobuf() * 20_001)
    assert "is more than 20,000 files and folders" in refusal(tmp_path / "x.tar")
