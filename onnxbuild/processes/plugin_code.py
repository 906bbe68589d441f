"""Step kinds of plug-ins in a step's process."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from onnxbuild.catalog import CATALOG, composition
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import from_json, to_json
from onnxbuild.core.ports import Job
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import PLUGIN, Finding, Outcome, StepContext, StepKind
from onnxbuild.core.target import run_by
from onnxbuild.plugins.bring import bring_plugins, refuse_faulty
from onnxbuild.plugins.guarded import guarded_run
from onnxbuild.plugins.load import NAMES, features_of
from onnxbuild.processes.child_context import ChildContext


def code_of_plugins(job: Job) -> dict[str, Any]:
    """Return what a job's process has to know of plug-ins.

    Returns: `plugins`: the distributions to import. `own_kind`: None, or of a step kind in a file of
        the project all that is asked of it before the process is fenced in.
    """
    action = job.action
    names = [n[len(PLUGIN) : -1] for n in action.toolchain if n.startswith(PLUGIN)]
    plugin = composition().plugin_of.get(job.step.kind)
    if plugin is None or not plugin.of_project:
        return {"plugins": names, "own_kind": None}
    kind = CATALOG[job.step.kind]
    own = {
        "version": kind.version,
        "inputs": list(kind.inputs),
        "outputs": dict(kind.outputs),
        "toolchain": list(kind.toolchain),
        "entrypoints": [
            {**to_json(each), "outside": dict(each.outside)}
            for each in kind.entrypoints(job.step.params)
        ],
    }
    return {"plugins": names, "own_kind": own}


def kind_of(job: Mapping[str, Any]) -> StepKind:
    """Return the step kind of a job.

    One in a file of the project is imported when it is run: in the fence, where what it imports and
    opens is observed.

    Raises:
        PluginError: The plug-in can't be imported here.
    """
    if job["own_kind"] is not None:
        return _own_kind(job)
    if job["plugins"]:
        refuse_faulty(bring_plugins(names=job["plugins"]))
    kind = CATALOG[job["kind"]]
    plugin = composition().plugin_of.get(kind.name)
    if plugin is None or kind.user_code:  # what the user's code raises is the user's
        return kind
    return replace(kind, run=guarded_run(kind.run, plugin))


class _OwnRun:
    """The run() of a step kind in a file of the project: imports the file, then runs what it has.

    Args:
        own: The file, as an entrypoint without a name.
    """

    def __init__(self, job: Mapping[str, Any], own: Entrypoint) -> None:
        self.file = own.target.rpartition(":")[0]
        self._job = job
        self._own = own

    def __call__(self, context: StepContext) -> Outcome:
        assert isinstance(context, ChildContext)
        name, interpreter = self._job["kind"], self._job["interpreter"]
        module = context.module(self._own)
        brought = next((getattr(module, each) for each in NAMES if hasattr(module, each)), ())
        kinds = [kind for each in features_of([brought], "")[0] for kind in each.kinds]
        found = next((each for each in kinds if each.name == name), None)
        if found is None:
            raise StepError(
                f"it brings no step kind '{name}' in a step's process, though it does where "
                "recipes are read",
                where=self.file,
                fix="let it bring the same wherever it is imported",
            )
        params: Any = from_json(found.params, self._job["params"])
        context.params = params if interpreter is None else run_by(params, interpreter)
        return found.run(context)


def _own_kind(job: Mapping[str, Any]) -> StepKind:
    known = job["own_kind"]
    entrypoints = tuple(from_json(Entrypoint, each) for each in known["entrypoints"])
    return StepKind(
        name=job["kind"],
        version=known["version"],
        params=object,
        inputs=tuple(known["inputs"]),
        outputs=known["outputs"],
        toolchain=tuple(known["toolchain"]),
        run=_OwnRun(job, entrypoints[0]),
        user_code=True,
        entrypoints=lambda _: entrypoints,
    )


def check_outputs(kind: StepKind, context: ChildContext, outcome: object) -> None:
    """Hold a step of a plug-in to its declaration.

    Raises:
        StepError: run() returned no Outcome, or one that no result can hold, wrote an output that the
            kind does not declare, or wrote none of those that it does.
    """
    place = _place_of(kind)
    if not place:
        return
    made = {name for name, folder in context.outputs.items() if any(folder.iterdir())}
    what, fix = _outcome_fault(outcome)
    if not what and (made != set(kind.outputs) or made != set(context.outputs)):
        wrote = ", ".join(sorted(made)) or "none"
        what = f"declares the outputs {', '.join(sorted(kind.outputs))}; run() wrote {wrote}"
        fix = "write files into `context.output(NAME)` for each declared name, and no other"
    if what:
        raise StepError(f"the step kind '{kind.name}' {what}", where=place, fix=fix)


def _outcome_fault(outcome: object) -> tuple[str, str]:
    """Return what is wrong with what run() returned, and the fix; empty for nothing."""
    if not isinstance(outcome, Outcome):
        what = f"returned {type(outcome).__name__}; expected an Outcome"
        return what, "end run() with `return Outcome(metrics={...})`"
    for name, kind in (("findings", Finding), ("notes", str)):
        found = getattr(outcome, name)
        if not isinstance(found, tuple | list) or not all(
            isinstance(each, kind) for each in found
        ):
            what = f"returned the {name} {found!r:.200}; expected a tuple of {kind.__name__}"
            return what, f"write `Outcome({name}=(ONE,))`, also for a single one"
    metrics: Any = outcome.metrics
    if not isinstance(metrics, Mapping):
        what = f"returned the metrics {metrics!r:.200}; expected a mapping"
        return what, "write `Outcome(metrics={NAME: VALUE})`"
    for name, value in metrics.items():
        try:
            json.dumps({name: value}, allow_nan=False)
        except (TypeError, ValueError):
            what = f"returned the metric {name!r} with {value!r:.200}, which JSON can't hold"
            return what, "write finite numbers and text of Python: `float(VALUE)`"
    return "", ""


def _place_of(kind: StepKind) -> str:
    """The plug-in and its file; empty for a step kind of this package's own."""
    if isinstance(kind.run, _OwnRun):
        return kind.run.file
    plugin = composition().plugin_of.get(kind.name)
    return "" if plugin is None else f"{plugin.label} ({plugin.file})"
