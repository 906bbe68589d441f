"""Hit or miss: pure but for the questions it asks of the ports."""

from collections.abc import Mapping
from dataclasses import fields

from onnxbuild.core.action import NO_FILE, NOT_INSTALLED, Action, ActionResult, Observed
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.decision import (
    FIRST_BUILD,
    Decision,
    Hit,
    Miss,
    Reason,
    changed_action,
    changed_observed,
)
from onnxbuild.core.errors import RecipeError, StepError
from onnxbuild.core.graph import Step
from onnxbuild.core.host_variables import variables_of
from onnxbuild.core.places import for_people, real_path
from onnxbuild.core.ports import Fingerprints, History, Host, Store
from onnxbuild.core.step import OPTIONAL, StepKind
from onnxbuild.core.target import environment_of


def make_action(
    step: Step,
    kind: StepKind,
    inputs: Mapping[str, Artifact],
    fingerprints: Fingerprints,
    host: Host,
) -> Action:
    """Make a step's action: everything that decides its output, as it is now.

    Args:
        inputs: Input name -> artifact.
        fingerprints: How files and packages are now.
        host: The machine that would run it.

    Raises:
        RecipeError: A declared file is gone.
        StepError: Something in the kind's toolchain is missing, or the environment of the step's
            target is of no use.
    """
    files: dict[str, str] = {}
    entrypoints = kind.entrypoints(step.params)
    outside = {name: folder for each in entrypoints for name, folder in each.outside.items()}
    for entrypoint in entrypoints:
        for path in entrypoint.files:
            real = real_path(path, outside)
            digest = fingerprints.file(real)
            if digest is None:
                raise RecipeError(
                    f"declared file '{real}' can't be read",
                    where=str(step.location),
                    fix="put it back, or take it out of `files:`",
                )
            files[path] = digest
    toolchain = {"python": fingerprints.python()}
    environment = environment_of(step.params)
    interpreter = None
    if environment is not None:
        interpreter = fingerprints.environment(environment, str(step.location))
    for member in (*kind.toolchain, *step.code):
        name = member.removesuffix(OPTIONAL)
        if interpreter is not None and name == interpreter.replaces:
            toolchain |= interpreter.packages
            continue
        digest = fingerprints.distribution(name)
        if digest is None and member == name:
            missing = fingerprints.missing(name)
            raise StepError(
                f"step kind '{kind.name}' needs {missing.what}", where=step.name, fix=missing.fix
            )
        toolchain[name] = digest or NOT_INSTALLED
        folder = fingerprints.folder(name)
        if folder is not None:
            outside[name] = folder
    return Action(
        kind=kind.name,
        version=kind.version,
        params=step.params_json,
        inputs={name: artifact.sha256 for name, artifact in inputs.items()},
        files=files,
        toolchain=toolchain,
        host=host_part(kind, step, host),
        outside=outside,
        interpreter=interpreter,
    )


def host_part(kind: StepKind, step: Step, host: Host) -> dict[str, str] | None:
    """Return the facts of a machine that a step's key holds, since its output can depend on them; None if there are none."""
    if kind.host_bound and not kind.any_host(step.params):
        return {**host.facts(), **(host.drivers() if kind.driver_bound else {})}
    return (variables_of(host.facts()) or None) if kind.user_code else None


def current_state(
    observed: Observed, outside: Mapping[str, str], fingerprints: Fingerprints
) -> Observed:
    """The same files, folders and packages as they are now; what is gone is left out.

    Args:
        observed: What a step was seen to use.
        outside: Where the action's folders outside the project are.
        fingerprints: How things are now.
    """
    sources = {path: fingerprints.source(real_path(path, outside)) for path in observed.sources}
    links = {path: fingerprints.link(real_path(path, outside)) for path in observed.links}
    return Observed(
        sources={path: digest for path, digest in sources.items() if digest is not None},
        data={
            path: fingerprints.file(real_path(path, outside)) or NO_FILE for path in observed.data
        },
        listings={
            folder: fingerprints.listing(real_path(folder, outside), listing.names)
            for folder, listing in observed.listings.items()
        },
        distributions={
            name: fingerprints.distribution(name) or NOT_INSTALLED
            for name in observed.distributions
        },
        links={path: target for path, target in links.items() if target is not None},
        existence={
            path: fingerprints.existence(real_path(path, outside)) for path in observed.existence
        },
    )


def decide(
    step: Step, action: Action, *, store: Store, fingerprints: Fingerprints, history: History
) -> Decision:
    """A hit if some recorded result was made from exactly what is there now, and is whole.

    Else the reasons are what differs from the newest recorded result; or from an earlier one that used
    the same files and is nearer: the newest may be of an edit that was taken back.
    """
    newest: list[frozenset[str]] | None = None
    changes: list[tuple[Reason, ...]] = []
    damaged: list[Reason] = []
    for result in store.lookup(action.key):
        now = current_state(result.observed, action.outside, fingerprints)
        if now != result.observed:
            newest = newest or _used(result.observed)
            if _used(result.observed) == newest:
                changes.append(changed_observed(result.observed, now))
            continue
        faults = _faults(result, store)
        if not faults:
            return Hit(result)
        damaged += faults
    if damaged:
        return Miss(tuple(damaged))
    if changes:
        return Miss(_reasons_of(min(changes, key=len), action))  # of equally near ones, the newest
    last = history.last(step.name)
    return Miss(
        (FIRST_BUILD,) if last is None else _reasons_of(changed_action(last, action), action)
    )


def _used(observed: Observed) -> list[frozenset[str]]:
    """Return the names of all that a step was seen to use."""
    return [frozenset(getattr(observed, each.name)) for each in fields(observed)]


def _reasons_of(reasons: tuple[Reason, ...], action: Action) -> tuple[Reason, ...]:
    """The reasons with files outside the project named as they are on this machine."""
    if not action.outside:
        return reasons
    return tuple(
        Reason(*(for_people(text, action.outside) for text in (each.subject, each.old, each.new)))
        for each in reasons
    )


def input_fault(
    step: str, inputs: Mapping[str, Artifact], store: Store, *, by_content: bool
) -> StepError | None:
    """The first damage in what a step is built from: its result could not be right.

    Args:
        by_content: Before it runs they are read, however sound they look; afterwards a look does.
    """
    for name, artifact in inputs.items():
        for fault in store.faults(artifact, by_content=by_content):
            return StepError(f"input {name}: {fault}", where=step, fix="run again: it is rebuilt")
    return None


def _faults(result: ActionResult, store: Store) -> list[Reason]:
    return [
        Reason(f"output {name}", fault, "rebuilt")
        for name, artifact in result.outputs.items()
        for fault in store.faults(artifact)
    ]
