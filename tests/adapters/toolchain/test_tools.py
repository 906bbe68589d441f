"""Compilers, programs and headers, as keys see them."""

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.tools import header_folder, headers_digest, is_tool, tool_digest
from onnxbuild.core.step import COMPILER, CXX_HEADER, HEADERS


@pytest.fixture
def stats(tmp_path):
    return StatCache(Index(tmp_path / "index.db"))


@pytest.fixture
def headers(tmp_path):
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / CXX_HEADER).write_text("#pragma once\n")
    (folder / "onnxruntime_c_api.h").write_text("#define ORT_API_VERSION 21\n")
    return folder


def test_a_program_is_the_first_of_its_name_by_its_bytes(tmp_path, stats):
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
    folders = (str(first), str(second))
    name = "<program cmake>"
    assert is_tool(name)
    assert tool_digest(name, stats, folders) is None
    (second / "cmake").write_text("2")
    found = tool_digest(name, stats, folders)
    assert found.split()[:2] == ["cmake", "cmake"]
    (first / "cmake").write_text("1")
    assert tool_digest(name, stats, folders) != found
    (first / "clang++").write_text("1")
    assert tool_digest(COMPILER, stats, folders).startswith("clang++ clang++ ")
    (second / "g++").symlink_to(first / "clang++")
    assert tool_digest(COMPILER, stats, folders).startswith("g++ clang++ ")


def test_headers_are_those_of_the_variable_and_of_no_other_folder(headers, stats, tmp_path):
    named = {"ORT_INCLUDE_DIR": str(headers)}
    assert header_folder(named, stats.digest) == str(headers)
    assert header_folder({"ORT_INCLUDE_DIR": str(tmp_path)}, stats.digest) is None
    installed = header_folder({}, stats.digest)
    assert installed is None or installed.endswith("/include/onnxruntime")


def test_each_header_counts_and_nothing_else(headers, stats):
    found = headers_digest(str(headers), stats)
    assert found.startswith("onnxruntime-headers 1.21 ")
    (headers / "README").write_text("")
    assert headers_digest(str(headers), stats) == found
    (headers / "onnxruntime_float16.h").write_text("")
    changed = headers_digest(str(headers), stats)
    assert changed != found
    (headers / CXX_HEADER).write_text("#pragma twice\n")
    assert headers_digest(str(headers), stats) not in {found, changed}
    assert headers_digest(None, stats) is None
    assert is_tool(HEADERS)
