"""The order of releases, by their versions."""

from __future__ import annotations

import random

from onnxbuild.release_format.about import version_order

IN_ORDER = [
    "0.9.0", "0.10.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11",
    "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2", "1.10", "2.0.0-rc.1+of.mine", "2.0.0",
]  # fmt: skip


def test_numbers_sort_as_numbers_and_a_candidate_is_before_its_release():
    shuffled = random.Random(0).sample(IN_ORDER, len(IN_ORDER))
    assert sorted(shuffled, key=version_order) == IN_ORDER
