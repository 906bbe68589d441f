import json

import pytest

from onnxbuild.adapters.toolchain.distributions import editable_folders


def info(site, name, origin):
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    if origin is not None:
        (folder / "direct_url.json").write_text(origin)


def test_what_is_installed_in_place_is_found_where_its_direct_url_says(tmp_path):
    place = tmp_path / "größe and space"
    editable = {"dir_info": {"editable": True}, "url": place.as_uri()}
    info(tmp_path / "site", "mine", json.dumps(editable))
    assert editable_folders((str(tmp_path / "site"),)) == (str(place),)


@pytest.mark.parametrize(
    "origin",
    [None, '{"url": "file:///x", "dir_info": {}}', '{"url": "file:///x.whl", "archive_info": {}}'],
)
def test_what_is_installed_otherwise_is_not(tmp_path, origin):
    info(tmp_path / "site", "other", origin)
    assert editable_folders((str(tmp_path / "site"),)) == ()
