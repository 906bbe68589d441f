"""Paths that were seen, as they are recorded: the same on every machine."""

import json

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.fingerprints import DiskFingerprints
from onnxbuild.adapters.toolchain.path_names import PathNames
from onnxbuild.core.places import HOME


@pytest.fixture
def folder(tmp_path):
    for name in ("project", "home/hub/deep", "real"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "linked").symlink_to("real")
    return tmp_path


@pytest.fixture
def names(folder):
    places = {
        HOME: f"{folder}/home",
        "<model 1>": f"{folder}/home/hub",
        "<model 2>": f"{folder}/linked",
        "<model 3>": "/",
    }
    return PathNames(folder / "project", places)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("project/a.py", "a.py"),
        ("project/", "./"),
        ("projects/a", "{folder}/projects/a"),
        ("home/hub/a.bin", "<model 1>/a.bin"),
        ("home/hubs/a.bin", "<home>/hubs/a.bin"),
        ("real/w.bin", "<model 2>/w.bin"),
    ],
)
def test_the_nearest_folder_names_a_path(folder, names, path, shown):
    assert names.shown(f"{folder}/{path}") == shown.format(folder=folder)


def test_a_path_with_no_folder_stays_absolute(names):
    assert names.shown("/etc/hosts") == "/etc/hosts"


def test_what_was_named_is_found_again_on_a_machine_where_it_lies_elsewhere(tmp_path, monkeypatch):
    """The home folder and an editable installation, as another machine has them."""
    digests = []
    for machine in ("one", "two"):
        home, site = tmp_path / machine / "home", tmp_path / machine / "site"
        info = site / "my_pkg-1.0.dist-info"
        info.mkdir(parents=True)
        (home / "src/my pkg").mkdir(parents=True)
        (home / "src/my pkg/code.py").write_text("x = 1\n")
        (home / ".settings").write_text("quiet")
        reported = {"url": (home / "src/my pkg").as_uri(), "dir_info": {"editable": True}}
        (info / "direct_url.json").write_text(json.dumps(reported))
        monkeypatch.setenv("HOME", str(home))
        stats = StatCache(Index(tmp_path / f"{machine}.db"))
        prints = DiskFingerprints(tmp_path, stats, Distributions(stats, (str(site),)))
        names = PathNames(tmp_path / "project", prints.places())
        recorded = names.shown(f"{home}/src/my pkg/code.py"), names.shown(f"{home}/.settings")
        assert recorded == ("<editable my-pkg>/code.py", "<home>/.settings")
        digests.append((prints.source(recorded[0]), prints.file(recorded[1])))
    assert None not in digests[0]
    assert digests[0] == digests[1]


def test_only_a_sound_note_of_an_editable_folder_counts(tmp_path):
    notes = {
        "archive": '{"url": "file:///x.whl", "archive_info": {}}',
        "remote": '{"url": "https://x/y", "dir_info": {"editable": true}}',
        "damaged": '{"url": "file:///x", "dir_info"',
        "odd": "[]",
        "good": '{"url": "file:///srv/good", "dir_info": {"editable": true}}',
    }
    for name, text in notes.items():
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "direct_url.json").write_text(text)
    (tmp_path / "plain-1.dist-info").mkdir()
    packages = Distributions(StatCache(Index(tmp_path / "i.db")), (str(tmp_path),))
    assert packages.editables() == {"good": "/srv/good"}
