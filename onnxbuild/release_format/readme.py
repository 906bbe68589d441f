"""The page that a release opens with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from onnxbuild.lock.model import Lock
from onnxbuild.onnxkit.plots.shown_ratio import UNKNOWN, shown_ratio
from onnxbuild.release_format.bundles import (
    AHEAD_OF_TIME,
    FORMATS,
    SECTIONS,
    VARIANTS,
    Section,
    bound_to,
    bundles_of,
    section_bundles,
)
from onnxbuild.release_format.figures import Figures, Latency

if TYPE_CHECKING:
    from jinja2 import Template

_TEMPLATE = "readme.md.j2"
_MIB, _KIB = 2**20, 2**10


def readme(
    about: Mapping[str, Any],
    lock: Lock,
    manifests: Mapping[str, Mapping[str, Any]],
    figures: Mapping[str, Figures],
) -> str:
    """The page, in Markdown.

    Args:
        about: The release.json.
        lock: The release's.
        manifests: Bundle -> its manifest.json.
        figures: Bundle -> its numbers.
    """
    rows: dict[str, list[list[str]]] = {each.key: [] for each in SECTIONS}
    for section, name, _ in section_bundles(about):
        rows[section.key].append(_row(name, figures[name]))
    bundles = bundles_of(about)
    bound = {bundles[name]["bundle"]: bound_to(each) for name, each in manifests.items()}
    rendered: str = _page().render(
        name=about["name"],
        version=about["version"],
        onnxbuild=about["onnxbuild"],
        recipe=lock.recipe,
        origin=_origin(about["source"]),
        rows=rows,
        bound={place: machine for place, machine in bound.items() if machine},
        measured=_measured(about, lock),
        onnx=_first_onnx(about, manifests),
        program=_first(about, FORMATS),
        artifact=_first(about, AHEAD_OF_TIME),
    )
    return rendered


@cache
def _page() -> Template:
    from jinja2 import Environment, StrictUndefined

    text = resources.files(__package__).joinpath(_TEMPLATE).read_text(encoding="utf-8")
    page = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701 - Markdown
    return page.from_string(text)


def _first(about: Mapping[str, Any], wanted: Section) -> str:
    """The first bundle of a section; empty if it has none."""
    found = (entry["bundle"] for section, _, entry in section_bundles(about) if section == wanted)
    return next(found, "")


def _first_onnx(
    about: Mapping[str, Any], manifests: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    """How the first ONNX variant is loaded; empty if there is none."""
    for section, name, entry in section_bundles(about):
        if section == VARIANTS:
            feeds = ", ".join(f'"{each["name"]}": ...' for each in manifests[name]["inputs"])
            return {
                "bundle": entry["bundle"],
                "provider": manifests[name]["providers"][0]["name"],
                "feeds": f"{{{feeds}}}",
            }
    return {}


def _origin(source: Mapping[str, Any]) -> str:
    if source["commit"] is None:
        return "of no commit: **nobody else can build it again**"
    entry = f"commit `{source['commit']}`"
    if source["dirty"]:
        files = ", ".join(f"`{path}`" for path in source["changed"])
        entry += f" **with changes that it does not have** ({files})"
    return entry


def _row(name: str, figures: Figures) -> list[str]:
    latency = figures.latencies[0] if figures.latencies else None
    return [
        name,
        figures.precision,
        _size(figures.model_bytes),
        _of_first(figures.errors, ".1e"),
        _of_first(figures.cosines, ".5f"),
        _of_first(figures.equals, ".4f"),
        _of_first(figures.scores, ".4f"),
        "-" if latency is None else f"{latency.p50_ms:.3g} ms ({latency.point})",
        _speedup(latency),
    ]


def _of_first(values: Mapping[str, float], form: str) -> str:
    """Of the first provider."""
    return next((format(value, form) for value in values.values()), "-")


def _speedup(latency: Latency | None) -> str:
    return UNKNOWN if latency is None else shown_ratio(*latency.speedup)


def _size(size_bytes: int) -> str:
    mib = size_bytes / _MIB
    return f"{mib:.1f} MiB" if mib >= 1 else f"{size_bytes / _KIB:.1f} KiB"


def _measured(about: Mapping[str, Any], lock: Lock) -> str:
    """Where the latencies of the table come from; empty if there are none."""
    measured = [each["benchmarks"] for each in bundles_of(about).values() if each["benchmarks"]]
    if not measured:
        return ""
    steps: Mapping[str, str] = dict(sorted(measured[0].items()))  # as release.json has them
    ran = (name for name, step in steps.items() if "skipped" not in lock.measurements[step])
    target = next(ran, next(iter(steps)))
    host = lock.measurements[steps[target]].get("host", {})
    threads = host.get("threads")
    counted = f" and {threads} thread{'s' if threads != 1 else ''}" if threads else ""
    noisy = "; ".join(host.get("noisy", ()))
    doubt = f", **on a noisy machine** ({noisy})" if noisy else ""
    return f"{host.get('cpu', 'an unnamed CPU')}{counted} ({target}){doubt}"
