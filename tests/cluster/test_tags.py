"""Tags of workers: what they are by themselves, and which steps ask for one."""

from pathlib import Path

import pytest

from onnxbuild.building.api import Request, graph_of
from onnxbuild.cluster.executor import RemoteHost
from onnxbuild.cluster.requirements import tags_of
from onnxbuild.host.host import HostFacts
from tests.cli.conftest import cheap  # noqa: F401 - a fixture


@pytest.mark.parametrize(
    ("machine", "flags", "tags"),
    [
        ("x86_64", {"avx2", "avx512f", "avx512_vnni"}, ["avx2", "avx512", "avx512_vnni"]),
        ("x86_64", set(), []),
        ("aarch64", {"asimddp"}, ["arm64"]),
        ("arm64", {"asimddp"}, ["arm64"]),
    ],
)
def test_a_worker_is_named_by_the_target_cpus_that_it_is(machine, flags, tags):
    assert tags_of(HostFacts(machine, frozenset(flags)), ()) == tags


def test_a_worker_s_own_tags_are_compared_in_one_form():
    assert tags_of(HostFacts("riscv64", frozenset()), ["Bench-Box", "gpu"]) == ["bench_box", "gpu"]


def test_steps_bound_to_a_host_ask_for_the_tag_and_others_do_not(cheap, monkeypatch):  # noqa: F811
    monkeypatch.chdir(cheap.folder)
    steps = graph_of(Request((Path("tiny.yaml"),))).steps
    plain = RemoteHost("one", {"tags": ["avx2"]}, "tcp://one", {}, "tcp://s:1", on="bench_box")
    missing = plain.missing(steps["tiny:fp32/validate"])
    assert missing is not None
    assert missing.what == (
        "a worker with the tag 'bench_box' (`on` of the executor); one has avx2"
    )
    assert "onnxbuild worker tcp://s:1 --tag bench_box" in missing.fix
    assert plain.missing(steps["tiny:export"]) is None
    tagged = RemoteHost("two", {"tags": ["bench_box"]}, "tcp://two", {}, "tcp://s:1", "bench_box")
    assert tagged.missing(steps["tiny:fp32/validate"]) is None
