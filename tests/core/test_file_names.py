"""Names that a store says: those that stay below a folder are taken, all others are refused."""

import posixpath
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest
from onnxbuild.core.file_names import (
    check_file_name,
    check_file_names,
    check_names_everywhere,
    check_part,
)
from onnxbuild.core.graph import Deliverable
from onnxbuild.onnxkit.bundles.manifest import OPERATORS_FOLDER

PARTS = st.lists(st.sampled_from(["a", "model.onnx", "..", ".", "", "/", "\\", "\0", "C:", "…"]))
DIGEST = Digest.of(b"")


@pytest.mark.parametrize("name", ["model.onnx", "..hidden", "ab:c", "aux"])
def test_a_name_below_the_folder_is_taken(name):
    assert check_file_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "/a",
        "//a",
        "a/",
        "a//b",
        "a/./b",
        "a/../b",
        "../a",
        "a\\b",
        "a\0",
        "C:/a",
        "a:",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(name):
    with pytest.raises(ValueError, match=r"is not the name of a file|starts with a drive"):
        check_file_name(name)


@given(PARTS)
def test_whatever_is_taken_stays_below_its_folder(parts):
    name = "/".join(parts)
    try:
        check_file_name(name)
    except ValueError:
        return
    joined = posixpath.join("/folder", name)
    assert posixpath.normpath(joined) == joined
    assert joined.startswith("/folder/")


@pytest.mark.parametrize("names", [["a", "a"], ["a/b", "a", "c"]])
def test_two_files_need_two_places(names):
    with pytest.raises(ValueError, match=r"is there twice|is a file and a folder"):
        check_file_names(names)
    with pytest.raises(ValueError, match=r"is there twice|is a file and a folder"):
        Artifact("bundle", tuple((name, DIGEST) for name in names))


@pytest.mark.parametrize(
    "names",
    [
        ["A", "a"],
        ["a/B", "a/b"],
        ["\u00e9", "e\u0301"],
        ["\u00df", "SS"],
        ["A", "a/b"],
        ["a/B/c", "a/b"],
    ],
)
def test_files_for_any_disk_differ_in_more_than_case_and_accents(names):
    check_file_names(names)
    with pytest.raises(ValueError, match="on some disks"):
        check_names_everywhere(names)
    check_names_everywhere(["Model/a", "model/b", "c"])  # one folder at worst


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", "a\\b", "\0"])
def test_a_folder_in_out_has_the_name_of_one_entry(name):
    with pytest.raises(ValueError, match="is not the name of a file"):
        check_part(name)
    for names in ((name, "fp32"), ("bert", name)):
        with pytest.raises(ValueError, match="is not the name of a file"):
            Deliverable(*names, ())


@pytest.mark.parametrize(
    ("sha256", "size"),
    [("a" * 63, 0), ("A" * 64, 0), ("../" + "a" * 61, 0), ("a" * 64 + "\n", 0), ("a" * 64, -1)],
)
def test_a_digest_is_64_hex_digits_and_a_size(sha256, size):
    with pytest.raises(ValueError, match="is not a"):
        Digest(sha256, size)


@pytest.mark.parametrize(
    ("sha256", "size"), [(5, 0), (None, 0), ("a" * 64, True), ("a" * 64, "0")]
)
def test_a_digest_of_other_types_is_none(sha256, size):
    with pytest.raises(TypeError):
        Digest(sha256, size)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (".git/config", "is hidden"),
        ("a/.GIT/hooks/post-checkout", "is hidden"),
        (".g\u200cit/config", "can't be seen"),  # HFS+ leaves out such characters
        ("g\u0131t\u200d", "can't be seen"),
        ("git~1/config", "short name"),
        ("a/PRE-CO~1.YAM", "short name"),
        (".envrc", "is hidden"),
        ("cpp/.vscode/tasks.json", "is hidden"),
        (".idea/workspace.xml", "is hidden"),
        (".pre-commit-config.yaml", "is hidden"),
        ("a/HEAD", "programs load or run"),
        ("head", "programs load or run"),
        ("sitecustomize.py", "is Python"),
        ("recipe/conftest.py", "is Python"),
        ("Conftest.Py", "is Python"),
        ("conf\u0442est\u017f.py", "is Python"),
        ("numpy/__init__.py", "is Python"),
        ("onnxruntime.pyc", "programs load or run"),
        ("__pycache__/load.cpython-313.pyc", "programs load or run"),
        ("evil.pth", "programs load or run"),
        ("node_modules/onnxruntime-node/index.js", "programs load or run"),
        ("numpy.cpython-313-x86_64-linux-gnu.so", "is a library outside of operators/"),
        ("libonnxruntime.so.1", "is a library outside of operators/"),
        ("operators/more/version.dll", "is a library outside of operators/"),
        ("git.exe", "programs load or run"),
        ("AGENTS.md", "programs load or run"),
        ("conftest.py.", "dot after it"),
        ("conftest.py ", "space around"),
        (" conftest.py", "space around"),
        ("conftest.py::$DATA", "not every system can write"),
        ("a\x1b[2J", "can't be seen"),
        ("\udcff", "can't be seen"),
        ("\u4e00" * 86, "more than 255 bytes"),
    ],
)
def test_a_name_that_a_tool_runs_or_reads_by_itself_is_passed_on_by_nobody(name, why):
    with pytest.raises(ValueError, match=why):
        check_names_everywhere(["model.onnx", name])
    with pytest.raises(ValueError, match=why):
        Artifact("bundle", ((name, DIGEST),))
    if len(name.encode("utf-8", "replace")) < 255:
        Artifact("reference", ((name, DIGEST),))  # a store is nobody's working folder


@pytest.mark.parametrize(
    "name",
    [
        "operators/linux-x86_64/libfancy.so",
        "load.py",
        "packages/fp32-web/serve.py",
        f"{OPERATORS_FOLDER}/libbox.so.1.2",
        "variants/head/model.onnx.data",
        "digits@seed=1,size=2/fp32/manifest.json",
        "repository/a-pipeline/1/model.onnx",
        "recipe/Größe \u4e00 (2).yaml",
        "headers/head.yaml",
        "blobs/sha256/0a1b",
        "MLmodel",
    ],
)
def test_names_that_onnxbuild_writes_are_passed_on(name):
    check_names_everywhere([name])


@pytest.mark.parametrize(
    "path", ["a/" * 32 + "b", "a/" * 100_000 + "b", "a" * 1025, "a" * (1 << 22)]
)
def test_a_path_has_limits_which_are_checked_before_anything_is_made_of_it(path):
    tracemalloc.start()
    with pytest.raises(ValueError, match="a path has at most 32 and 1,024") as caught:
        check_names_everywhere([path])
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(str(caught.value)) < 250
    assert peak_bytes < 100_000
    check_file_name("a/" * 31 + "b")


def test_the_check_of_many_deep_paths_takes_memory_of_their_size():
    names = [f"{'abcdef/' * 30}{number:05}{'c' * 200}" for number in range(1000)]
    tracemalloc.start()
    check_names_everywhere(names)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 5 * sum(map(len, names))
    with pytest.raises(ValueError, match="there are 10,001 files; expected at most 10,000"):
        check_names_everywhere([str(number) for number in range(10_001)])


def test_folders_without_end_are_refused():
    names = [f"{number}/{'a/' * 30}f" for number in range(9_999)]
    with pytest.raises(ValueError, match="more than 10,000 folders"):
        check_names_everywhere(names)
    check_names_everywhere([f"{number}/f" for number in range(10_000)])
