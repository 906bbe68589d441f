import json
from pathlib import Path

import pytest

from onnxbuild.onnxkit.sensitivity.losses import most_sensitive
from tests.fakes.step_context import FolderContext


def kept(folder: Path, count: int, share: float) -> int:
    nodes = [{"name": f"n{number}"} for number in range(count)]
    (folder / "report.json").write_text(json.dumps({"nodes": nodes}))
    names = most_sensitive(FolderContext(None, folder, {"sensitivity": folder}), share)
    assert names == [f"n{number}" for number in range(len(names))]
    return len(names)


@pytest.mark.parametrize(
    ("count", "share", "expected"), [(36, 0.05, 2), (100, 0.07, 7), (1, 0.5, 0)]
)
def test_a_share_is_rounded_up_and_leaves_one_to_quantize(tmp_path, count, share, expected):
    assert kept(tmp_path, count, share) == expected


def test_all_of_them_are_kept_where_that_is_asked_and_none_where_nothing_is(tmp_path):
    assert (kept(tmp_path, 3, 1.0), kept(tmp_path, 3, 0.0)) == (3, 0)
    assert kept(tmp_path, 0, 0.5) == 0
