"""What `--executor` may say, and what is said of a slip."""

import pytest

from onnxbuild.cluster.addresses import Slurm, read_executor
from onnxbuild.core.errors import UsageError


def test_each_form():
    assert read_executor("local") is None
    assert read_executor("dask://build.example:8786").scheduler == "tcp://build.example:8786"
    assert read_executor("dask+tls://10.0.0.7:8786").scheduler == "tls://10.0.0.7:8786"
    assert read_executor("dask://[::1]:8786").scheduler == "tcp://[::1]:8786"
    assert read_executor("dask:local?workers=4").workers == 4
    assert read_executor("dask:local").workers == 2
    assert read_executor("dask://build:8786?on=AVX512-VNNI").on == "avx512_vnni"
    assert read_executor("slurm") == Slurm("slurm")
    assert read_executor("slurm:long?jobs=4&cpus=8&gpus=1") == Slurm(
        "slurm:long?jobs=4&cpus=8&gpus=1", "long", 4, 8, 1
    )


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("dask:/build:8786", "--executor dask://build:8786"),
        ("tcp://build:8786", "--executor dask://build:8786"),
        ("build:8786", "--executor dask://build:8786"),
        ("dask://build", "--executor dask://build:8786"),
        ("locl", "--executor local"),
        ("dask:locl", "--executor dask:local"),
        ("slrum", "--executor slurm"),
        ("ray", "--executor dask:local?workers=4"),
        ("dask://build:99999", "--executor dask://build:8786"),
    ],
)
def test_a_slip_is_said_with_what_to_type(text, fix):
    with pytest.raises(UsageError) as caught:
        read_executor(text, "pyproject.toml")
    assert f"there is no executor '{text}'" in caught.value.what
    assert caught.value.where == "pyproject.toml"
    assert caught.value.fix == fix


@pytest.mark.parametrize(
    ("text", "said", "fix"),
    [
        ("dask:local?worker=4", "'worker=4'; expected workers=4", "'dask:local?workers=4'"),
        ("dask:local?workers=0", "'workers=0'", "'dask:local?workers=4'"),
        ("dask://b:1?on=", "'on='; expected on=avx512_vnni", "'dask://b:1?on=avx512_vnni'"),
        ("slurm?cpu=2", "expected jobs=16 or cpus=4 or gpus=1", "'slurm?jobs=16'"),
    ],
)
def test_an_option_that_is_none_is_said(text, said, fix):
    with pytest.raises(UsageError) as caught:
        read_executor(text)
    assert said in caught.value.what
    assert caught.value.fix == f"--executor {fix}"
