"""Results of verbs as their JSON documents; see `onnxbuild.output` for what the fields mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from onnxbuild.core.action import NOT_INSTALLED
from onnxbuild.output.build import (
    PlannedRecord,
    ReasonRecord,
    RecipeChangeRecord,
    ReproducedRecord,
    WhyRecord,
)
from onnxbuild.output.checks import (
    DoctorRecord,
    LockedRecord,
    LocksRecord,
    MachineFact,
    MachineProblem,
    ReleasedRecord,
)
from onnxbuild.output.models import ExplainRecord, GraphRecord, InitRecord, PushedRecord

if TYPE_CHECKING:
    from onnxbuild.building.api import BuildResult
    from onnxbuild.building.since import RecipeChange
    from onnxbuild.core.decision import Reason
    from onnxbuild.core.graph import Graph
    from onnxbuild.engine.plan import Planned
    from onnxbuild.first_recipe.init import Written
    from onnxbuild.lock.model import Lock
    from onnxbuild.release.release import Release
    from onnxbuild.relock import Relocked
    from onnxbuild.reproduction.reproduce import Reproduction

_TOPIC_COLUMNS = 13


def why_document(
    each: Planned, roots: Sequence[Planned], story: Sequence[str] | None
) -> WhyRecord:
    """Return what `why` found.

    Args:
        each: The step that was asked for.
        roots: Steps upstream that run for reasons of their own.
        story: Why it last ran.
    """
    state = "blocked" if each.blocked else "left out" if each.left_out else ""
    state = state or ("cached" if each.hit else "maybe" if each.after else "run")
    return {
        "type": "why",
        "step": each.step,
        "state": state,  # type: ignore[typeddict-item]
        "reasons": reasons_of(each.reasons),
        "upstream": [{"step": root.step, "reasons": reasons_of(root.reasons)} for root in roots],
        "blocked_by": [*each.blocked],
        "left_out": each.left_out,
        "last": None if story is None else [*story],
    }


def planned_record(each: Planned) -> PlannedRecord:
    """Return a line of `plan`."""
    state = "cached" if each.hit else "maybe" if each.after else "run"
    state = "blocked" if each.blocked else "left out" if each.left_out else state
    return {
        "step": each.step,
        "state": "fails" if each.error is not None else state,  # type: ignore[typeddict-item]
        "reasons": reasons_of(each.reasons),
        "after": list(each.after),
    }


def recipe_change_record(each: RecipeChange, commit: str) -> RecipeChangeRecord:
    """Return a line of `plan --since`.

    Args:
        commit: The commit that is compared with.
    """
    return {
        "recipe": each.recipe,
        "file": str(each.file),
        "since": commit,
        "changed": bool(each.causes),
        "causes": [
            {"path": str(cause.path), "change": cause.change, "reason": cause.reason}  # type: ignore[typeddict-item]
            for cause in each.causes
        ],
    }


def reproduced_record(found: Reproduction) -> ReproducedRecord:
    """Return the last line of `reproduce`."""
    error, divergence = found.error, found.divergence
    return {
        "type": "reproduced",
        "exit_code": found.exit_code,
        "compared": list(found.compared),
        "left_out": list(found.left_out),
        "varied": [list(varied) for varied in found.rounds],
        "wall_s": round(found.wall_s, 3),
        "step": divergence.step if divergence else "",
        "output": divergence.output if divergence else "",
        "what": error.what if error else "",
        "fix": error.fix if error else "",
    }


def reasons_of(reasons: Iterable[Reason]) -> list[ReasonRecord]:
    """Return reasons as JSON."""
    return [{"subject": each.subject, "old": each.old, "new": each.new} for each in reasons]


def graph_document(graph: Graph) -> GraphRecord:
    """Return a graph's steps with what they take."""
    return {
        "type": "graph",
        "steps": [
            {
                "step": name,
                "kind": step.kind,
                "inputs": {key: ref.step for key, ref in step.inputs.items()},
                "file": step.location.path,
                "line": step.location.line or None,
            }
            for name, step in graph.steps.items()
        ],
    }


def explain_document(texts: Sequence[str], keys: Sequence[str] = ()) -> ExplainRecord:
    """Return recipes in full, as text and as values; or the pages of keys."""
    import yaml

    recipes = [{"yaml": text, "recipe": yaml.safe_load(text)} for text in texts]
    return {"type": "explain", "recipes": recipes, "keys": [*keys]}  # type: ignore[typeddict-item]


def init_document(written: Written) -> InitRecord:
    """Return what `init` wrote."""
    return {
        "type": "init",
        "files": [str(file) for file in written.files],
        "recipe": str(written.recipe),
        "about": [*written.about],
        "fill_in": [*written.holes],
        "next": written.next_command,
    }


def installed_of(lock: Lock) -> int:
    """Return how many installed packages a lock names."""
    return sum(
        digest != NOT_INSTALLED and not name.startswith("<")
        for name, digest in lock.packages.items()
    )


def locks_document(result: BuildResult, relocked: Sequence[Relocked], code: int) -> LocksRecord:
    """Return what `lock` did.

    Args:
        relocked: The locks; of a failed build, none counts.
    """
    from onnxbuild.building.outcome import failure_records

    is_built = result.exit_code == 0
    return {
        "type": "lock",
        "exit_code": code,
        "locks": [_locked(each) for each in relocked] if is_built else [],
        "failures": [] if is_built else failure_records(result.graph, result.report),
    }


def _locked(each: Relocked) -> LockedRecord:
    from onnxbuild.lock.text import lock_command

    is_different = bool(each.new or each.differences)
    state = "up to date" if not is_different else "different"
    if each.written:
        state = "written" if each.new else "renewed"
    return {
        "recipe": str(each.recipe),
        "path": str(each.path),
        "state": state,  # type: ignore[typeddict-item]
        "differences": [str(difference) for difference in each.differences],
        "steps": len(each.lock.steps),
        "sources": len(each.lock.sources),
        "files": len(each.lock.files),
        "packages": installed_of(each.lock),
        "fix": lock_command(each.recipe) if state == "different" else "",
    }


def release_document(
    result: BuildResult, release: Release | None, pushed: PushedRecord | None
) -> ReleasedRecord:
    """Return a release that was written, or why none was.

    Args:
        release: The release; None where the build failed.
    """
    from onnxbuild.building.outcome import failure_records

    published = None if release is None else release.published
    return {
        "type": "release",
        "exit_code": 0 if release is not None else result.exit_code,
        "name": "" if release is None else release.name,
        "folder": "" if published is None else str(published.folder),
        "archive": "" if published is None else str(published.archive),
        "sha256": "" if published is None else published.sha256,
        "bytes": 0 if published is None else published.size_bytes,
        "files": 0 if published is None else published.files,
        "variants": [] if release is None else [*release.variants],
        "others": [] if release is None else [*release.others],
        "signed": release is not None and release.signed,
        "written": published is not None and published.written,
        "notices": [] if release is None else [*release.notices],
        "pushed": pushed,
        "failures": [] if release is not None else failure_records(result.graph, result.report),
    }


def doctor_document(said: str, problems: Sequence[tuple[str, str]]) -> DoctorRecord:
    """Return what `doctor` found.

    Args:
        said: What it prints for people: a topic in the first columns, or none where one goes on.
        problems: What keeps this machine from building, and what to type.
    """
    facts: list[MachineFact] = []
    for line in said.splitlines():
        topic, text = line[:_TOPIC_COLUMNS].strip(), line[_TOPIC_COLUMNS:].strip()
        if topic or not facts:
            facts.append({"topic": topic, "lines": []})
        facts[-1]["lines"].append(text)
    found: list[MachineProblem] = [{"what": what, "fix": fix} for what, fix in problems]
    return {"type": "doctor", "ok": not problems, "problems": found, "facts": facts}
