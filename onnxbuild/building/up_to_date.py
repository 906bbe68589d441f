"""Up to date at a glance, for `api.build`: recall the last good run of a request, or note this one."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from onnxbuild.adapters import locate, machine, memo
from onnxbuild.building import glance
from onnxbuild.building.environments import environments_of
from onnxbuild.building.outcome import skipped_targets, summarize, variant_records
from onnxbuild.building.request import Loaded, Request, fits, ok_line, remarks_of, request_of
from onnxbuild.building.wiring import Workspace
from onnxbuild.catalog import CATALOG
from onnxbuild.core.graph import Graph
from onnxbuild.core.step import StepKind
from onnxbuild.engine.report import Report


def memo_key(request: Request, catalog: Mapping[str, StepKind]) -> str:
    """Return the key of a request's memo; with other step kinds it is another request.

    Args:
        request: What is asked for.
        catalog: Step kinds by name.
    """
    return request_of(request, "" if catalog is CATALOG else _identity(catalog))


def recall(request: Request, catalog: Mapping[str, StepKind]) -> dict[str, Any] | None:
    """Return what the last good run of a request left, if all that it looked at is as it was.

    Args:
        request: What is asked for.
        catalog: Step kinds by name.

    Returns: As `glance.recall`; None, too, where something measures anew or a path is odd: the
        whole decision says what is wrong with it.
    """
    if request.comparison is not None or not request.recipes:
        return None
    try:
        root = request.store_root
        return glance.recalled(root, memo_key(request, catalog)) if root.is_dir() else None
    except (OSError, ValueError):
        return None


def remember(
    request: Request,
    loaded: Loaded,
    graph: Graph,
    report: Report,
    *,
    workspace: Workspace,
    catalog: Mapping[str, StepKind],
    program: Iterable[str],
    started_ns: int,
) -> None:
    """Note all that a good run looked at; nothing where an environment that it did without is missing.

    Args:
        request: What was asked for.
        catalog: Step kinds by name.
        program: The files of this program and its plug-ins.
        started_ns: Wall clock when the run began.
    """
    known, needed = workspace.fingerprints.environments, environments_of(graph)
    if any(map(known.is_missing, needed)):  # it may be possible to make it next time
        return
    names = [*loaded.variables, *(("PATH",) if any(each.npm for each in needed) else ())]
    for path in program:
        workspace.stats.look(path)
    memo.remember(
        workspace.root,
        memo_key(request, catalog),
        {
            "environment": {name: locate.environment().get(name) for name in names},
            "environments": [known.folder(each) for each in needed],
            "steps": len(graph.steps),
            "names": "" if report.left_out else "\n".join(graph.steps),
            "lint": glance.lint_lines(
                [*map(str, remarks_of(loaded))],
                ok_line(loaded, graph),
                fits=fits(loaded, machine.memory_bytes()),
            ),
            "store": str(workspace.root),
            "summary": summarize(graph, report),
            "skipped": skipped_targets(graph, report),
            "variants": json.dumps(variant_records(graph, report, workspace.root)),
        },
        workspace.stats,
        started_ns=started_ns,
    )


def _identity(catalog: Mapping[str, StepKind]) -> str:
    """The kinds of a catalog as text: as much of them as keys of results have, and where they are."""
    kinds = [
        (name, kind.version, kind.run.__module__, kind.run.__qualname__)
        for name, kind in catalog.items()
    ]
    return json.dumps(sorted(kinds))
