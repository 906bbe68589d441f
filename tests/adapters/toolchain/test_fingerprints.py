"""What counts as a change of a source, a folder, a package."""

import re
import tomllib
from pathlib import Path

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.fingerprints import DiskFingerprints, missing_member
from onnxbuild.adapters.toolchain.importable import Importable, entries_of
from onnxbuild.adapters.toolchain.source_digest import source_digest_of
from onnxbuild.catalog import all_features, extra_of, needing
from onnxbuild.core.environment import NPM
from onnxbuild.core.step import COMPILER

SOURCE = b'def load(width=8):\n    """Say."""\n    return width + 1\n'


@pytest.mark.parametrize(
    "edited",
    [
        b'# new\ndef load(width=8):\n    """Say."""\n    return width + 1  # why\n',
        b'def load(\n    width = 8,\n):\n    """Say."""\n\n    return (width + 1)\n',
    ],
)
def test_comments_and_layout_do_not_count(edited):
    assert source_digest_of(edited) == source_digest_of(SOURCE)


@pytest.mark.parametrize(
    "edited", [SOURCE.replace(b"+ 1", b"+ 2"), SOURCE.replace(b"return", b"retrun it")]
)
def test_code_doc_strings_and_type_comments_count(edited):
    assert source_digest_of(edited) != source_digest_of(SOURCE)


def test_a_listing_sees_what_could_be_imported_and_nothing_else(tmp_path):
    for name in ("helper.py", "other.py", "helper.txt", "json.py", "helper.cpython-311.so"):
        (tmp_path / name).write_text("")
    (tmp_path / "pack").mkdir()
    found = Importable(entries_of(str(tmp_path))).of(["helper", "pack", "gone"])
    assert found == ("helper.cpython-311.so", "helper.py", "json.py", "pack")
    assert Importable(entries_of(str(tmp_path / "gone"))).of(["helper"]) == ()


@pytest.fixture
def site(tmp_path):
    info = tmp_path / "site" / "Some_Tool-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "RECORD").write_text(
        "some_tool/__init__.py,sha256=abc,10\n"
        "some_tool/__pycache__/__init__.cpython-311.pyc,,\n"
        "../../../bin/some-tool,sha256=shebang,20\n"
        "Some_Tool-1.0.dist-info/INSTALLER,sha256=zz,4\n"
        "Some_Tool-1.0.dist-info/RECORD,,\n"
    )
    return info


def distributions(site, tmp_path):
    stats = StatCache(Index(tmp_path / "index.db"))
    return Distributions(stats, (str(site.parent),))


def test_a_distribution_is_known_by_its_files(site, tmp_path):
    first = distributions(site, tmp_path).digest("some-tool")
    assert first is not None
    assert first.startswith("some-tool 1.0 ")
    record = site / "RECORD"
    record.write_text(record.read_text().replace("sha256=abc", "sha256=def"))
    assert distributions(site, tmp_path).digest("some_tool") != first


def test_what_an_installer_writes_differently_elsewhere_does_not_count(site, tmp_path):
    first = distributions(site, tmp_path).digest("some-tool")
    record = site / "RECORD"
    text = record.read_text().replace("sha256=shebang", "sha256=else").replace("sha256=zz", "x")
    record.write_text(text + "some_tool/__pycache__/x.cpython-312.pyc,,\n")
    assert distributions(site, tmp_path).digest("some-tool") == first


def test_the_gpu_package_stands_for_onnxruntime(tmp_path):
    info = tmp_path / "site" / "onnxruntime_gpu-1.2.dist-info"
    info.mkdir(parents=True)
    found = Distributions(StatCache(Index(tmp_path / "i.db")), (str(info.parent),))
    assert found.version("onnxruntime") == "1.2"
    assert found.digest("onnxruntime") == "onnxruntime-gpu 1.2 no-record"


def test_owners_tell_which_distribution_a_module_comes_from(site, tmp_path):
    assert distributions(site, tmp_path).owners() == {"some_tool": ("some-tool",)}


def test_a_compiler_is_known_by_its_programs_bytes(tmp_path):
    def digest():
        stats = StatCache(Index(tmp_path / "index.db"))
        found = DiskFingerprints(
            tmp_path, stats, Distributions(stats, ()), [f"{tmp_path}/none", f"{tmp_path}/bin"]
        ).distribution(COMPILER)
        return found, stats.seen

    assert digest()[0] is None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "g++-12").write_bytes(b"12.2.0")
    (tmp_path / "bin" / "g++").symlink_to("g++-12")
    first, seen = digest()
    assert first.startswith("g++ g++-12 ")
    assert len(first.split(" ")) == 3
    assert {f"{tmp_path}/none/g++", f"{tmp_path}/bin/g++"} <= set(seen)
    (tmp_path / "bin" / "g++-12").write_bytes(b"12.2.0-14+deb12u2")
    assert digest()[0] != first


def test_what_is_missing_is_named_with_what_to_do(tmp_path):
    what = "a C++ compiler; there is no g++ and no clang++ in /py, /bin"
    stats = StatCache(Index(tmp_path / "index.db"))
    prints = DiskFingerprints(tmp_path, stats, Distributions(stats, ()), ["/py", "/bin"])
    missing = prints.missing(COMPILER)
    assert missing.what.startswith(what)
    assert "install g++" in missing.fix


def test_programs_and_headers_are_named_with_how_to_get_them():
    assert missing_member("<program cmake>", ("/usr/bin",)).what == (
        "the program 'cmake'; there is none in /usr/bin"
    )
    assert "ORT_INCLUDE_DIR" in missing_member("<onnxruntime headers>", ()).fix


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("skl2onnx", "pip install 'onnxbuild[sklearn]'"),
        ("lightgbm", "pip install 'onnxbuild[lightgbm]'"),
        ("onnxscript", "pip install onnxscript"),
    ],
)
def test_a_package_of_an_extra_is_installed_with_all_of_it(name, fix):
    found = missing_member(name, (), extra_of(name))
    assert found.what == f"the package '{name}', which is not installed"
    assert found.fix == fix


def test_each_extra_that_a_feature_names_brings_the_package():
    content = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    extras = tomllib.loads(content)["project"]["optional-dependencies"]
    for feature in all_features():
        for package, extra in feature.extras.items():
            assert any(re.match(rf"{package}\b(?!-)", each) for each in extras[extra]), package


def test_what_needs_a_program_is_named_as_recipes_ask_for_it():
    assert needing(COMPILER) == "formats: [aotinductor]"
    assert needing(NPM) == "packages: {node, web}"
    assert needing("nothing") == ""
