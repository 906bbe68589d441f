"""`packages`: other forms of the checked bundles."""

from __future__ import annotations

from collections.abc import Iterator

from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.asked import PACKAGES, AskedOfVariants, PackagesOptions
from onnxbuild.expansion.asked_faults import asked_faults
from onnxbuild.expansion.evaluation import PROCESSING
from onnxbuild.expansion.feature import Feature, Section


def _faults(parts: Parts) -> Iterator[Fault]:
    yield from asked_faults(parts, PACKAGES)
    options, made = parts.sections.get(PACKAGES), parts.sections.get(PROCESSING)
    if not isinstance(options, PackagesOptions) or options.of == "model":
        return
    at = parts.at(PACKAGES, "of")
    if parts.node(PROCESSING) is None:
        what = f"packages are of `{options.of}`; the recipe has no `processing`, so there is no pipeline"
        yield Fault(what, at, "remove `of`, or add `processing`")
    elif isinstance(made, AskedOfVariants) and parts.sound("quantization"):
        chosen = [name for name in parts.variants if options.includes(name)]
        lacking = [name for name in chosen if not made.includes(name)]
        if lacking:
            what = (
                f"packages are of pipelines, and processing makes none of variant '{lacking[0]}'"
            )
            yield Fault(
                what,
                at,
                f"add `{lacking[0]}` to processing.variants, or name others in packages.variants",
            )


FEATURE = Feature(
    name=PACKAGES, sections=(Section(name=PACKAGES, options=PackagesOptions),), faults=_faults
)
