"""What of an environment's folder is software, and what anybody may have put there."""

from __future__ import annotations

import pytest

from onnxbuild.adapters.observe.installed_paths import is_data_of_prefix, prefixes_of


@pytest.mark.parametrize(
    ("path", "is_data"),
    [
        ("env/share/nltk_data/words.txt", True),
        ("env/lib/python3/site-packages/one/data.json", False),
        ("env/share/zoneinfo/UTC", False),
        ("elsewhere/models/weights.safetensors", False),
    ],
)
def test_a_file_next_to_an_environments_packages_is_data(tmp_path, path, is_data):
    (tmp_path / "env/bin").mkdir(parents=True)
    (tmp_path / "env/bin/python").touch()
    (tmp_path / "program").mkdir()
    prefixes = prefixes_of([f"{tmp_path}/env", f"{tmp_path}/program"])
    assert is_data_of_prefix(f"{tmp_path}/{path}", prefixes) == is_data
