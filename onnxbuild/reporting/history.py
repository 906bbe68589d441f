"""Earlier builds and releases of a recipe, as lines over time."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from onnxbuild.adapters.store.layout import blob_path
from onnxbuild.adapters.store.runs import noted_reports
from onnxbuild.core.errors import BuildError
from onnxbuild.onnxkit.report_page.blocks import (
    Block,
    Figure,
    Lines,
    Paragraph,
    Part,
    ReportSource,
    Series,
)
from onnxbuild.onnxkit.report_page.compose import compose
from onnxbuild.release.previous import Previous, read_previous
from onnxbuild.release_format.about import version_order
from onnxbuild.release_format.layout import DIST_FOLDER, RELEASE_FILE
from onnxbuild.reporting.gather import shown_run

_MOST = 30
_LOG = "ms"
"""Part of the name of a figure that is drawn on a logarithmic axis."""

Moment = tuple[str, tuple[Figure, ...]]
"""A build or a release, and its figures."""


def over_time(project: Path, root: Path, recipe: str, bundles: Collection[str] = ()) -> Part:
    """Return the figures of a recipe's earlier builds and of its releases.

    Args:
        project: The folder whose dist/ has the releases.
        bundles: Show these; empty for all.
    """
    blocks = [
        *_lines("builds", "build", _only(_builds(project, root, recipe), bundles)),
        *_lines("releases", "release", _only(_releases(project, recipe), bundles)),
    ]
    return Part("history", tuple(blocks))


def _only(moments: Sequence[Moment], bundles: Collection[str]) -> list[Moment]:
    """The figures of some bundles, and the moments that have any."""
    cut = [
        (mark, tuple(each for each in figures if not bundles or each.bundle in bundles))
        for mark, figures in moments
    ]
    return [each for each in cut if each[1]]


def _lines(what: str, head: str, moments: Sequence[Moment]) -> Iterator[Block]:
    """A plot for each figure that some moments have, a line for each variant."""
    if len(moments) < 2:  # noqa: PLR2004 - one alone is no line
        return
    yield Paragraph(f"{len(moments)} {what}, the oldest at the left.")
    marks = tuple(mark for mark, _ in moments)
    names = dict.fromkeys(each.name for _, figures in moments for each in figures)
    for name in names:
        bundles = dict.fromkeys(
            each.bundle for _, figures in moments for each in figures if each.name == name
        )
        series = tuple(
            Series(bundle, tuple(_value(figures, name, bundle) for _, figures in moments))
            for bundle in bundles
        )
        yield Lines(f"{name}, by {head}", head, marks, series, log=_LOG in name.split(", "))


def _value(figures: Sequence[Figure], name: str, bundle: str) -> float | None:
    found = (each.value for each in figures if (each.name, each.bundle) == (name, bundle))
    return next(found, None)


def _builds(project: Path, root: Path, recipe: str) -> list[Moment]:
    """The runs that built something of it, and whose reports are still there; the same in a row once."""
    found: list[Moment] = []
    for run, rows in noted_reports(root, project, recipe):
        sources = []
        for row in rows:
            files = {name: blob_path(root, sha256) for name, sha256 in row["files"].items()}
            if all(path.is_file() for path in files.values()):
                sources.append(
                    ReportSource(
                        row["form"], row["bundle"], row["step"], row["target"], row["gate"], files
                    )
                )
        try:
            bundles = dict.fromkeys(each.bundle for each in sources if each.bundle)
            figures = compose(recipe, "", tuple(bundles) or ("",), sources).figures
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            continue  # the reports of another version of onnxbuild
        if figures and (not found or found[-1][1] != figures):
            found.append((shown_run(run), figures))
    return found[-_MOST:]


def _releases(project: Path, recipe: str) -> list[Moment]:
    dist = project / DIST_FOLDER
    folders = sorted(dist.glob(f"{recipe}-*/{RELEASE_FILE}")) if dist.is_dir() else []
    versions = {path.parent: path.parent.name.removeprefix(f"{recipe}-") for path in folders}
    found = []
    for path in sorted(versions, key=lambda each: version_order(versions[each])):
        try:
            found.append(_moment(read_previous(path, recipe)))
        except BuildError:
            continue  # it is of another recipe, or damaged: `onnxbuild verify` says so
    return found[-_MOST:]


def _moment(release: Previous) -> Moment:
    figures = []
    for bundle, found in release.figures.items():
        figures.append(Figure(bundle, "size, bytes", float(found.model_bytes), ""))
        for latency in found.latencies[:1]:
            name = f"median latency, ms, at {latency.point}"
            figures.append(Figure(bundle, name, latency.p50_ms, ""))
        for name, values in (
            ("cosine to the reference", found.cosines),
            ("largest error", found.errors),
            ("score", found.scores),
        ):
            figures += [Figure(bundle, name, value, "") for value in list(values.values())[:1]]
    return release.title, tuple(figures)
