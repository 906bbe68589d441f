"""The master law with a shared store: whatever a team edits and a server loses, each build equals a clean one, and then rests."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from onnxbuild.building.remote import Remote
from onnxbuild.core.digest import Digest
from onnxbuild.engine.plan import plan
from tests.adapters.remote.machines import CI, Machine
from tests.engine.edited_graphs import FILES, apply, clean, edits, graphs
from tests.examples import examples
from tests.fakes.world import CATALOG, FakeExecutor, World, outputs

if TYPE_CHECKING:
    from onnxbuild.core.graph import Graph
    from onnxbuild.engine.report import Report


class TeamWorld(World):
    """One machine of a team: its own store, which leaves blobs on the shared one until a step opens them."""

    def __init__(self, folder: Path, shared: Path, machine: str) -> None:
        super().__init__()
        self.machine = Machine(folder, shared.as_uri(), builder=CI, fetch="needed")
        self.executor = FakeExecutor(self.files, SimpleNamespace(put=self._put))  # type: ignore[arg-type]
        (self.host,) = self.executor.machines
        self.host.machine = {"cpu": machine}

    def _put(self, content: bytes) -> Digest:
        digest = Digest.of(content)
        path = self.machine.disk.root / "tmp" / "made"
        path.write_bytes(content)
        self.machine.disk.adopt(path, digest)
        return digest

    def build_shared(self, graph: Graph) -> Report:
        """Build as `onnxbuild run --wait-uploads` does."""

        def prospect(graph: Graph, catalog: object) -> object:
            del catalog
            return plan(
                graph, CATALOG, store=self.store, fingerprints=self.files, history=self.history,
                host=self.host,
            )  # fmt: skip

        self.machine.next_run()
        self.store = self.machine.store  # type: ignore[assignment]
        remote = Remote("", self.machine.client, self.machine.store, self.machine.uploads)
        remote.fetch_ahead(SimpleNamespace(plan=prospect), graph, CATALOG, (), 0)  # type: ignore[arg-type]
        report = self.build(graph)
        self.machine.uploads.wait()
        return report


def spoil(folder: Path, kind: str, number: int) -> None:
    """Lose all or one of the files of a store, or damage one."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    if kind == "wipe":
        for path in found:
            path.unlink()
    elif found and kind == "lose":
        found[number % len(found)].unlink()
    elif found:
        path = found[number % len(found)]
        path.chmod(0o644)
        path.write_bytes(b"flipped" + path.read_bytes()[7:])


_spoils = st.tuples(
    st.sampled_from(["shared/cas", "shared/ac", "0/store/cas", "1/store/cas", "0/store/ac"]),
    st.sampled_from(["lose", "flip", "wipe"]),
    st.integers(0, 50),
)


@st.composite
def _courses(draw: st.DrawFn) -> list[tuple[int, Graph, list[Any], list[Any]]]:
    """Who builds which of a few graphs, after which edits and losses."""
    plans = draw(st.lists(graphs(), min_size=1, max_size=2))
    one = st.tuples(
        st.integers(0, 1),
        st.sampled_from(plans),
        st.lists(edits, max_size=3),
        st.lists(_spoils, max_size=2),
    )
    return draw(st.lists(one, min_size=2, max_size=6))


@pytest.mark.always
@pytest.mark.sampled
@given(_courses())
@settings(
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # each example takes a second
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
def test_a_team_s_builds_equal_clean_ones_and_the_next_do_nothing(rounds):
    with tempfile.TemporaryDirectory() as temp, ExitStack() as cleanup:
        folder = Path(temp)
        team = [TeamWorld(folder / str(n), folder / "shared", "fake") for n in range(2)]
        for each in team:
            cleanup.enter_context(closing(each.machine))
            each.files = each.executor._files = team[0].files  # one repository
        team[0].files.files = dict.fromkeys(FILES, "a")
        for who, graph, drawn, spoils in rounds:
            for edit in drawn:
                if edit[0] not in {"flip", "lose blob", "lose record"}:
                    apply(team[who], edit)
            for place, kind, number in spoils:
                spoil(folder / place, kind, number)
            report = team[who].build_shared(graph)
            assert report.exit_code == 0
            assert outputs(report) == clean(team[who], graph)
            team[who].build_shared(graph)
            assert team[who].executor.started == []
