"""Contents of the bundles: signature, files with their digests, the packages that made them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onnxbuild.core.sizes import size_text
from onnxbuild.core.step import MANIFEST_FILE
from onnxbuild.onnxkit.report_page.blocks import (
    Block,
    Cell,
    Cells,
    Figure,
    Part,
    ReportSource,
    Table,
)
from onnxbuild.onnxkit.report_page.forms.reading import report_of

_NONE = "-"

Manifests = Sequence[tuple[ReportSource, Mapping[str, Any]]]


def bundle(sources: Sequence[ReportSource]) -> Iterator[Part]:
    """Yield what the bundles say of themselves."""
    found = [(source, report_of(source, MANIFEST_FILE)) for source in sources if source.files]
    described = [each for each in found if each[1].get("inputs") is not None]
    if described:
        figures = tuple(
            Figure(
                source.bundle,
                "size, bytes",
                manifest["size_bytes"],
                size_text(manifest["size_bytes"]),
                "size",
                rank=1,
            )
            for source, manifest in described
            if manifest.get("size_bytes")
        )
        yield Part("signature", tuple(_signature(described)), figures=figures)
    yield Part("contents", tuple(_contents(found, described)))


def _signature(described: Manifests) -> Iterator[Block]:
    seen: dict[str, tuple[Mapping[str, Any], list[str]]] = {}
    for source, manifest in described:
        key = repr((manifest["inputs"], manifest["outputs"], manifest.get("dynamic_axes")))
        seen.setdefault(key, (manifest, []))[1].append(source.bundle)
    for manifest, names in seen.values():
        rows: list[Cells] = [
            (
                Cell(each["name"], code=True),
                kind,
                each.get("dtype") or _NONE,
                Cell(_shape(each), code=True),
            )
            for kind, key in (("input", "inputs"), ("output", "outputs"))
            for each in manifest[key]
        ]
        yield Table(
            f"Inputs and outputs: {', '.join(names)}",
            ("name", "kind", "dtype", "shape"),
            tuple(rows),
        )
        axes = manifest.get("dynamic_axes") or {}
        if axes:
            axis_rows: tuple[Cells, ...] = tuple(
                (
                    Cell(name, code=True),
                    *(
                        str(each.get(key, _NONE))
                        for key in ("min", "max", "example", "multiple_of")
                    ),
                )
                for name, each in axes.items()
            )
            heads = ("axis", ">least", ">most", ">example", ">multiple of")
            yield Table("Dynamic axes", heads, axis_rows)


def _shape(each: Mapping[str, Any]) -> str:
    shape = each.get("shape")
    return _NONE if shape is None else f"[{', '.join(map(str, shape))}]"


def _contents(found: Manifests, described: Manifests) -> Iterator[Block]:
    rows: tuple[Cells, ...] = tuple(
        (
            source.bundle,
            str(manifest.get("kind", _NONE)),
            str(manifest.get("precision", _NONE)),
            size_text(manifest["size_bytes"]) if manifest.get("size_bytes") else _NONE,
            *(
                f"{manifest[key]:,}" if manifest.get(key) else _NONE
                for key in ("parameters", "nodes")
            ),
            ", ".join(
                f"{domain} {version}" for domain, version in (manifest.get("opsets") or {}).items()
            )
            or _NONE,
        )
        for source, manifest in described
    )
    heads = ("bundle", "kind", "precision", ">size", ">parameters", ">nodes", "opsets")
    if rows:
        yield Table("Models", heads, rows)
    others = [each for each in found if each not in described]
    if others:
        packed: tuple[Cells, ...] = tuple(
            (
                source.bundle,
                f"{len(source.files):,}",
                size_text(sum(p.stat().st_size for p in source.files.values())),
            )
            for source, _ in others
        )
        yield Table("Packages in other forms", ("folder", ">files", ">size"), packed)
    versions: dict[str, str] = {}
    for _, manifest in described:
        versions |= manifest.get("versions") or {}
    if versions:
        yield Table("Made with", ("package", "version"), tuple(sorted(versions.items())))
    yield Table(
        "Files and their SHA-256",
        ("bundle", "file", ">size", "sha256"),
        tuple(
            (
                source.bundle,
                Cell(name, code=True),
                size_text(each["size_bytes"]),
                Cell(each["sha256"], code=True),
            )
            for source, manifest in described
            for name, each in (manifest.get("files") or {}).items()
        ),
        folded=True,
    )
