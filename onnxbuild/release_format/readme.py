"""The page that a release opens with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from onnxbuild.lock.model import Lock
from onnxbuild.onnxkit.benchmark.baseline import one_heading
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.onnxkit.drawing.numbers import UNKNOWN, shown_ratio
from onnxbuild.release_format.bundles import SECTIONS, BundleSection, bundles_of
from onnxbuild.release_format.figures import Figures, Latency
from onnxbuild.release_format.package_records import PACKAGES, package_records

if TYPE_CHECKING:
    from jinja2 import Template

_TEMPLATE = "readme.md.j2"
_MIB, _KIB = 2**20, 2**10
_PLAIN_MS = 999.5  # from here on, three digits would be 1e+03


def readme(
    about: Mapping[str, Any],
    lock: Lock,
    manifests: Mapping[str, Manifest],
    figures: Mapping[str, Figures],
) -> str:
    """The page, in Markdown.

    Args:
        manifests: Bundle -> its manifest.
        figures: Bundle -> its numbers.
    """
    compared = any(
        latency.ratio is not None for each in figures.values() for latency in each.latencies
    )
    baselines = [latency.baseline for each in figures.values() for latency in each.latencies[:1]]
    parts = [
        _part(section, about, figures, compared=compared)
        for section in SECTIONS
        if about[section.key]
    ]
    bundles = bundles_of(about)
    bound = {bundles[name]["bundle"]: each.bound_to for name, each in manifests.items()}
    rendered: str = _page().render(
        name=about["name"],
        version=about["version"],
        onnxbuild=about["onnxbuild"],
        recipe=lock.recipe,
        origin=_origin(about["source"]),
        parts=parts,
        compared=one_heading(baselines) if compared else "",
        bound={place: machine for place, machine in bound.items() if machine},
        measured=_measured(about, lock),
        session=_first_session(about, manifests),
        packages=[
            (entry["folder"], entry["of"], entry["about"]) for _, entry in package_records(about)
        ],
        programs=bool(about[PACKAGES])
        or any(each.runtime == "torch" or each.operators for each in manifests.values()),
    )
    return rendered


@cache
def _page() -> Template:
    from jinja2 import Environment, StrictUndefined

    text = resources.files(__package__).joinpath(_TEMPLATE).read_text(encoding="utf-8")
    page = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701 - Markdown
    return page.from_string(text)


@dataclass(frozen=True, slots=True)
class _Part:
    """A section of the release that holds bundles: its rows, and the folder of its first bundle."""

    section: BundleSection
    rows: list[list[str]]
    first: str


def _part(
    section: BundleSection,
    about: Mapping[str, Any],
    figures: Mapping[str, Figures],
    *,
    compared: bool,
) -> _Part:
    names = sorted(about[section.key])
    rows = [_row(name, figures[name], compared=compared) for name in names]
    return _Part(section, rows, about[section.key][names[0]]["bundle"])


def _first_session(about: Mapping[str, Any], manifests: Mapping[str, Manifest]) -> dict[str, Any]:
    """Return how onnxruntime opens the first bundle for any provider; empty if there is none."""
    for name, entry in bundles_of(about).items():
        manifest = manifests[name]
        if manifest.providers:
            feeds = ", ".join(f'"{each.name}": ...' for each in manifest.inputs)
            return {
                "bundle": entry["bundle"],
                "file": manifest.file,
                "provider": manifest.providers[0].name,
                "feeds": f"{{{feeds}}}",
                "libraries": [each.file for each in manifest.operators or () if each.registers],
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


def _row(name: str, figures: Figures, *, compared: bool) -> list[str]:
    """One bundle's cells.

    Args:
        compared: With how many times as fast as the baseline it is.
    """
    latency = figures.latencies[0] if figures.latencies else None
    return [
        name,
        figures.precision,
        _size(figures.model_bytes),
        _of_first(figures.errors, ".1e"),
        _of_first(figures.cosines, ".5f"),
        _of_first(figures.equals, ".4f"),
        _of_first(figures.scores, ".4f"),
        "-" if latency is None else f"{_time(latency.p50_ms)} ms ({latency.point})",
        *([_speedup(latency)] if compared else ()),
    ]


def _time(value_ms: float) -> str:
    return f"{value_ms:.3g}" if value_ms < _PLAIN_MS else f"{value_ms:,.0f}"


def _of_first(values: Mapping[str, float], form: str) -> str:
    """Return the first provider's value as text; `-` if there is none."""
    return next((format(value, form) for value in values.values()), "-")


def _speedup(latency: Latency | None) -> str:
    return UNKNOWN if latency is None else shown_ratio(*latency.speedup)


def _size(size_bytes: int) -> str:
    mib = size_bytes / _MIB
    return f"{mib:.1f} MiB" if mib >= 1 else f"{size_bytes / _KIB:.1f} KiB"


def _measured(about: Mapping[str, Any], lock: Lock) -> str:
    """Return where the latencies of the table come from; empty if there are none."""
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
