"""What `--executor` may say, and what is said of a slip."""

from __future__ import annotations

import pytest

from onnxbuild.cluster.addresses import read_executor
from onnxbuild.core.errors import UsageError


def test_each_form():
    assert read_executor("local") is None
    assert read_executor("dask://build.example:8786").scheduler == "tcp://build.example:8786"
    assert read_executor("dask+tls://10.0.0.7:8786").scheduler == "tls://10.0.0.7:8786"
    assert read_executor("dask://[::1]:8786").scheduler == "tcp://[::1]:8786"
    assert read_executor("dask:local?workers=4").workers == 4
    assert read_executor("dask:local").workers == 2


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("dask:/build:8786", "--executor dask://build:8786"),
        ("tcp://build:8786", "--executor dask://build:8786"),
        ("build:8786", "--executor dask://build:8786"),
        ("dask://build", "--executor dask://build:8786"),
        ("locl", "--executor local"),
        ("dask:locl", "--executor dask:local"),
        ("dask:local?worker=4", "--executor dask:local"),
        ("dask:local?workers=0", "--executor dask:local"),
        ("slurm", "--executor dask:local?workers=4"),
        ("dask://build:99999", "--executor dask://build:8786"),
    ],
)
def test_a_slip_is_said_with_what_to_type(text, fix):
    with pytest.raises(UsageError) as caught:
        read_executor(text, "pyproject.toml")
    assert f"there is no executor '{text}'" in caught.value.what
    assert caught.value.where == "pyproject.toml"
    assert caught.value.fix == fix
