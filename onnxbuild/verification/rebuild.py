"""A release's models again, from the recipe at hand and from nothing."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from onnxbuild.adapters import machine
from onnxbuild.adapters.clock import run_id
from onnxbuild.adapters.console.sinks import FanOut
from onnxbuild.building.environments import environments_made
from onnxbuild.building.request import Request, load
from onnxbuild.building.wiring import RunOptions, open_workspace, start_run
from onnxbuild.catalog import CATALOG
from onnxbuild.core.graph import Graph
from onnxbuild.core.ports import EventSink, Fingerprints
from onnxbuild.core.recipe import Recipe
from onnxbuild.engine.report import Report
from onnxbuild.lock.bind import names_in_lock
from onnxbuild.lock.compare import differences
from onnxbuild.lock.guard import known_now
from onnxbuild.lock.model import Lock
from onnxbuild.release_format.released import Released
from onnxbuild.reproduction.first_divergence import comparable
from onnxbuild.resolver import resolve
from onnxbuild.verification.own_recipe import own_recipe
from onnxbuild.verification.verify import Checked

_SHOWN = 3


def verify_rebuild(
    release: Released,
    recipe: Path | None = None,
    options: RunOptions | None = None,
    events: Sequence[EventSink] = (),
) -> Iterator[Checked]:
    """Build everything but measurements in an empty store, and compare with the release's lock.

    The lock's digests are those of the release's files: `verify_contents` has seen to that.

    Args:
        release: Its files are what its checksums say, and its contents what its lock says.
        recipe: The recipe to build; None for the one that the lock names, see `own_recipe`.
        options: How to use the machine.
        events: Sinks for all events.

    Raises:
        UsageError: There is no such recipe, or it is in no commit.
        NotReproducibleError: The lock names no recipe of a project, but one that a release brings.
        RecipeErrors: It has faults.
        StepError: The environment of a target can't be made.
    """
    own_one = own_recipe(release, recipe)
    yield Checked("recipe", own_one.description)
    with tempfile.TemporaryDirectory(prefix="onnxbuild-rebuild-") as folder:
        request = Request((own_one.path,), store=str(Path(folder) / "store"))
        recipes = load(request).recipes
        own = resolve(recipes, machine.host_facts(), choices=release.lock.choices)
        graph = comparable(own, CATALOG)
        with ExitStack() as cleanup:
            workspace = open_workspace(request.project, request.store_root)
            cleanup.callback(workspace.close)
            sink = FanOut(list(events))
            cleanup.enter_context(environments_made(workspace, graph, sink))
            yield _inputs(release.lock, recipes, workspace.fingerprints)
            is_other = machine.host_class() != dict(release.lock.host)
            run = start_run(workspace, run_id(), options or RunOptions(), sink)
            cleanup.callback(run.close)
            report = run.builder.build(graph, run.id)
    yield Checked(
        "rebuilt",
        f"{len(graph.steps)} steps from nothing, every output as released",
        tuple(_faults(release.lock, own, graph, report, is_other=is_other)),
    )


def _inputs(lock: Lock, recipes: Sequence[Recipe], fingerprints: Fingerprints) -> Checked:
    """Compare what goes into the build with the lock: what is not as it was explains other outputs."""
    found = [d for d in differences(lock, known_now(lock, recipes, fingerprints)) if not d.follows]
    if not found:
        return Checked("inputs", "recipe, sources, files, packages, Python and host as locked")
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    detail = "; ".join(map(str, found[:_SHOWN]))
    return Checked("inputs", f"not all as locked: {detail}{more}", skipped=True)


def _faults(
    lock: Lock, own: Graph, graph: Graph, report: Report, *, is_other: bool
) -> Iterator[str]:
    """Yield the faults in the graph's order: the first is where the builds part.

    Args:
        own: The recipe's whole graph.
        graph: What of it was built.
        is_other: This is another kind of machine than the lock's.
    """
    for failure in report.failures:
        yield f"{failure.step} failed: {failure.error.what}"
    names = dict(names_in_lock(own, graph))
    for step, result in report.results.items():
        locked = lock.steps.get(names[step])
        if locked is None:
            yield f"{step} is not in the release's lock"
            continue
        for output, digest in locked.outputs.items():
            found = result.outputs.get(output)
            if found is None or found.sha256 != digest.sha256:
                now = "missing" if found is None else found.sha256[:12]
                detail = f"'{output}' of {step} is {now}; released as {digest.sha256[:12]}"
                yield f"{detail}{_bound(graph.steps[step].kind, is_other=is_other)}"
    built = {names[step] for step in report.results}
    if not report.failures:
        for name, locked in lock.steps.items():
            if locked.outputs and name not in built:
                yield f"{name} is in the release's lock, and not in the recipe"


def _bound(kind: str, *, is_other: bool) -> str:
    """Return why a step's bytes say nothing here, after a sentence; empty where they should be the same."""
    if why := CATALOG[kind].differs:
        return (
            f": they can't be compared, since {why}; what was built here was held against the "
            "reference by the same gate"
        )
    if is_other and CATALOG[kind].host_bound:
        return (
            ": they can't be compared, since they are bound to the kind of machine that the release "
            "was made on; what was built here was held against the reference by the same gate"
        )
    return ""
