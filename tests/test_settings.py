"""Settings of a project: pyproject.toml, then variables; what is wrong is one error."""

from pathlib import Path

import pytest

from onnxbuild.adapters.locate import store_layers, store_root
from onnxbuild.core.errors import UsageError
from onnxbuild.settings import read_settings

TABLE = (
    '[tool.onnxbuild]\nstore = "kept"\njobs = 3\nmemory = "2 GiB"\nremote = "file:///mnt/share"\n'
)


def test_variables_come_before_the_file_and_each_value_says_where_it_is_from(tmp_path):
    (tmp_path / "pyproject.toml").write_text(TABLE)
    found = read_settings(tmp_path, {"ONNXBUILD_JOBS": "5"})
    assert found.values == {
        "store": ["kept"], "jobs": 5, "memory": 2 << 30, "remote.url": "file:///mnt/share",
    }  # fmt: skip
    assert found.sources["jobs"] == "ONNXBUILD_JOBS"
    assert found.sources["memory"] == "pyproject.toml"
    assert found.path("store", "kept") == tmp_path / "kept"


def test_the_store_is_where_the_file_says(tmp_path, monkeypatch):
    monkeypatch.delenv("ONNXBUILD_STORE", raising=False)
    assert store_root(tmp_path, None) == tmp_path / "artifacts"
    (tmp_path / "pyproject.toml").write_text(TABLE)
    assert store_root(tmp_path, None) == tmp_path / "kept"
    assert store_root(tmp_path, "/elsewhere") == Path("/elsewhere")


def test_stores_below_are_named_by_a_list_a_variable_or_the_option(tmp_path, monkeypatch):
    monkeypatch.delenv("ONNXBUILD_STORE", raising=False)
    (tmp_path / "pyproject.toml").write_text('[tool.onnxbuild]\nstore = ["~/own", "shared"]\n')
    assert store_layers(tmp_path, None) == (Path("~/own").expanduser(), tmp_path / "shared")
    monkeypatch.setenv("ONNXBUILD_STORE", "/one:/two:/three")
    assert store_layers(tmp_path, None) == (Path("/one"), Path("/two"), Path("/three"))
    assert store_layers(tmp_path, "/four:/five") == (Path("/four"), Path("/five"))
    assert read_settings(tmp_path, {"ONNXBUILD_STORE": "/a:/b"}).values["store"] == ["/a", "/b"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("job = 4", "no setting 'job'; did you mean 'jobs'?"),
        ('jobs = "4"', "`jobs` is '4'; expected a number of steps: 4"),
        ("jobs = 0", "`jobs` is 0"),
        ('memory = "much"', "'much' is not a size"),
        ('default = "all"', "`default` is 'all'; expected a list of recipes"),
        ("remote = 3", "`remote` is 3; expected a table"),
        ("store = [", "it is no TOML"),
        ("store = [3]", "`store` is [3]; expected a folder, or a list"),
    ],
)
def test_a_faulty_setting_is_named(tmp_path, line, said):
    (tmp_path / "pyproject.toml").write_text(f"[tool.onnxbuild]\n{line}\n")
    with pytest.raises(UsageError) as caught:
        read_settings(tmp_path, {})
    assert said in caught.value.what
