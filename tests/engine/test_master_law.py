"""The master law: after any edits, an incremental build equals a clean one, and then rests."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.edited_graphs import FILES, apply, clean, edits, graphs
from tests.examples import examples
from tests.fakes.world import World, outputs


@pytest.mark.always
@pytest.mark.sampled
@given(st.lists(st.tuples(graphs(), st.lists(edits, max_size=4)), min_size=1, max_size=5))
@settings(max_examples=examples(150))
def test_an_incremental_build_equals_a_clean_one_and_the_next_does_nothing(rounds):
    world = World()
    world.files.files = dict.fromkeys(FILES, "a")
    for plan, drawn in rounds:
        for edit in drawn:
            apply(world, edit)
        report = world.build(plan)
        assert report.exit_code == 0
        assert outputs(report) == clean(world, plan)
        again = world.build(plan)
        assert world.executor.started == []
        assert outputs(again) == outputs(report)
