"""Random graphs of fake steps and random edits of their world, and what a clean build of them gives."""

from hypothesis import strategies as st

from onnxbuild.core.graph import Graph
from tests.fakes.world import World, graph, outputs, step

FILES = ("f0", "f1", "f2")
SOURCES = ("m0", "m1", "m2", "m3")


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    steps = []
    for number in range(draw(st.integers(1, 6))):
        needs = draw(st.sets(st.sampled_from(range(number)), max_size=3)) if number else set()
        steps.append(
            step(
                f"s{number}",
                *(f"s{need}" for need in sorted(needs)),
                kind=draw(st.sampled_from(["fake", "alone"])) if not needs else "fake",
                value=draw(st.integers(0, 1)),
                files=tuple(sorted(draw(st.sets(st.sampled_from(FILES), max_size=2)))),
                sources=tuple(sorted(draw(st.sets(st.sampled_from(SOURCES), max_size=2)))),
                lossy=draw(st.booleans()),
            )
        )
    return graph(*steps)


_TEXTS = st.one_of(
    st.sampled_from(["x = 1", "x = 2", "x = 1# comment"]),
    st.sampled_from(SOURCES).map("import {}".format),
)
edits = st.one_of(
    st.tuples(st.just("file"), st.sampled_from(FILES), st.sampled_from("abc")),
    st.tuples(st.just("source"), st.sampled_from(SOURCES), _TEXTS),
    st.tuples(st.just("remove"), st.sampled_from(SOURCES), st.just("")),
    st.tuples(st.just("package"), st.just("tool"), st.sampled_from(["tool 1.0", "tool 1.1"])),
    st.tuples(st.just("machine"), st.just("cpu"), st.sampled_from(["fake", "other"])),
    st.tuples(st.just("flip"), st.just(""), st.integers(0, 50)),
    st.tuples(st.just("lose blob"), st.just(""), st.integers(0, 50)),
    st.tuples(st.just("lose record"), st.just(""), st.integers(0, 50)),
)


def apply(world: World, edit: tuple[str, str, object]) -> None:
    """Edit a file, a package, the machine, or the store."""
    kind, name, value = edit
    if kind in {"file", "source"}:
        world.files.files[name] = str(value)
    elif kind == "remove":
        world.files.files.pop(name, None)
    elif kind == "package":
        world.files.packages[name] = str(value)
    elif kind == "machine":
        world.host.machine = {name: str(value)}
    else:
        pool = world.store.records if kind == "lose record" else world.store.blobs
        names = sorted(pool)
        if names:
            assert isinstance(value, int)
            chosen = names[value % len(names)]
            if kind == "flip":
                world.store.blobs[chosen] = b"flipped"
            else:
                del pool[chosen]  # type: ignore[attr-defined]


def clean(world: World, plan: Graph) -> dict[str, str]:
    """Return what a build with an empty store gives."""
    fresh = World()
    fresh.files.files = dict(world.files.files)
    fresh.files.packages = dict(world.files.packages)
    fresh.host.machine = dict(world.host.machine)
    return outputs(fresh.build(plan))
