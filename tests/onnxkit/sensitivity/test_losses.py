import json
from pathlib import Path

import pytest

from onnxbuild.onnxkit.accuracy.sample_outputs import Fidelity
from onnxbuild.onnxkit.model.blocks import Block
from onnxbuild.onnxkit.sensitivity.losses import Loss, most_sensitive, rank
from tests.fakes.step_context import FolderContext


class Scale:
    """Losses that add up; says what was measured."""

    def __init__(self, losses, drops=None):
        self.losses, self.drops, self.asked = losses, drops, set()

    def __call__(self, nodes):
        self.asked.add(frozenset(nodes))
        loss = sum(self.losses[n] for n in nodes)
        drop = sum(self.drops[n] for n in nodes) if self.drops else None
        return Loss(Fidelity(1, 1 - loss, 1 - loss, 0, None), None, drop)


def pairs(count):
    return [Block(f"h.{n}", (2 * n, 2 * n + 1)) for n in range(count)]


def names(count):
    return [f"node_{n:03}" for n in range(count)]


def test_all_is_measured_where_there_is_room():
    scale = Scale([0.01, 0.03, 0.02, 0.05])
    found = rank(scale, pairs(2), names(4), 6)
    assert [n for n, _, _ in found.nodes] == [3, 1, 2, 0]
    assert [block.name for block, _ in found.blocks] == ["h.1", "h.0"]
    assert len(scale.asked) == 6


def test_nodes_of_the_worst_blocks_alone_are_measured_where_there_is_not():
    losses = [0.001] * 20
    losses[13] = 0.1
    losses[4] = 0.05
    scale = Scale(losses)
    found = rank(scale, pairs(10), names(20), 20)
    assert len(scale.asked) == 20
    measured = [n for n, _, loss in found.nodes if loss]
    assert measured[:2] == [13, 4]
    assert len(measured) == 10
    assert {12, 13, 4, 5} < set(measured)
    assert [n for n, _, _ in found.nodes][:2] == [13, 4]
    assert sorted(n for n, _, _ in found.nodes) == list(range(20))


def test_what_was_not_measured_comes_in_its_blocks_order():
    losses = [0.1, 0.1, 0.001, 0.001, 0.02, 0.02]
    found = rank(Scale(losses), pairs(3), names(6), 6)
    assert [(n, loss is None) for n, _, loss in found.nodes] == [
        (0, False), (1, False), (4, True), (5, True), (2, True), (3, True),
    ]  # fmt: skip


@pytest.mark.parametrize("settings", [2, 50])
def test_measurements_are_bounded_whatever_the_model(settings):
    count = 300
    scale = Scale([0.001 * (n % 7) for n in range(count)])
    found = rank(scale, pairs(count // 2), names(count), settings)
    assert len(scale.asked) <= settings
    assert len(found.nodes) == count
    assert found.nodes[0][2] is not None


def test_a_block_too_large_to_measure_whole_is_measured_in_part():
    scale = Scale([0.001] * 9 + [0.1])
    found = rank(scale, [Block("all", tuple(range(10)))], names(10), 4)
    assert [n for n, _, loss in found.nodes if loss] == [0, 1, 2]


def test_the_metrics_drop_ranks_before_the_cosine():
    found = rank(Scale([0.3, 0.1, 0.2], [0.0, 0.05, 0.0]), [Block("a", (0, 1, 2))], names(3), 9)
    assert [n for n, _, _ in found.nodes] == [1, 0, 2]


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
