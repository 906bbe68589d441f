"""Sections that ask for something to be made of variants, and their faults."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from onnxbuild.core.params import option
from onnxbuild.core.recipe import DummyInput
from onnxbuild.document.faults import Fault, choices, hinted, nearest
from onnxbuild.document.parts import Parts, has_onnx

PACKAGES = "packages"
"""The section that asks for other forms of bundles."""


def attribute(key: str) -> str:
    """Return the name of the field that a key of a recipe is read into."""
    return key.replace("-", "_")


@dataclass(frozen=True)
class RequestSection:
    """Section that asks for something made of variants; the catalog adds a key for each format.

    Attributes:
        added: These keys.
    """

    variants: tuple[str, ...] = option((), help="variants to do this for; empty: all")

    added: ClassVar[tuple[str, ...]] = ()
    are_bundles: ClassVar[bool] = False
    """Whether packages are made of what it makes, too."""

    @property
    def makes_text(self) -> bool:
        """Whether what it makes takes or gives strings, where the model has none."""
        return False

    @property
    def requested(self) -> tuple[str, ...]:
        """Keys of what is to be made."""
        return tuple(key for key in self.added if self.options_of(key) is not None)

    def options_of(self, key: str) -> Any:
        """Return the options of what is to be made; None where it is not asked for."""
        return getattr(self, attribute(key))

    def includes(self, variant: str) -> bool:
        """Return whether it is to be made of that variant."""
        return not self.variants or variant in self.variants

    def folders(self, variants: Iterable[str]) -> tuple[str, ...]:
        """The folders of what is made, besides those of the variants themselves."""
        chosen = [name for name in variants if self.includes(name)]
        return tuple(f"{name}-{key}" for name in chosen for key in self.requested)


@dataclass(frozen=True)
class AheadOfTimeOptions(RequestSection):
    """Ahead-of-time models to make, each kept apart from the portable model."""

    load_times: bool = option(
        True, help="measure how long each of them takes to load, compared with the portable model"
    )


@dataclass(frozen=True)
class PackagesOptions(RequestSection):
    """Other forms of the checked bundles, each in a folder of its own."""

    variants: tuple[str, ...] = option(
        (), help="bundles to package: VARIANT, `VARIANT-pipeline`; empty: all"
    )


@dataclass(frozen=True, slots=True)
class NamedBundle:
    """A bundle that packages are made of, as far as the recipe's text describes it.

    Attributes:
        name: `int8`, `int8-pipeline`.
        is_further: It is made of a variant in addition to the variant's own bundle.
        has_text: It is such a bundle, and an input or output of it is of strings.
    """

    name: str
    is_further: bool = False
    has_text: bool = False


def named_bundles(
    sections: Iterable[object], variants: Iterable[str], inputs: Iterable[DummyInput]
) -> Iterator[NamedBundle]:
    """Yield all bundles that a recipe's packages can be made of.

    Args:
        variants: Names of its variants.
        inputs: Those of the model.
    """
    asked = [each for each in sections if isinstance(each, RequestSection) and each.are_bundles]
    has_text = any(each.dtype == "string" for each in inputs)
    for variant in variants:
        yield NamedBundle(variant)
        for each in asked:
            for name in each.folders([variant]):
                yield NamedBundle(name, is_further=True, has_text=has_text or each.makes_text)


def bundles_of(sections: Iterable[object], variant: str) -> tuple[str, ...]:
    """Return the bundles of a variant that packages are made of: its own first."""
    asked = [each for each in sections if isinstance(each, RequestSection) and each.are_bundles]
    return (variant, *(name for each in asked for name in each.folders([variant])))


def packaged_bundles(parts: Parts, section: PackagesOptions) -> list[str]:
    """Return the names of the bundles that packages are made of: variants, and their pipelines."""
    sections = parts.sections.values()
    bundles = [each for name in parts.variants for each in bundles_of(sections, name)]
    return [each for each in bundles if section.includes(each)]


def request_faults(parts: Parts, section: str) -> Iterator[Fault]:
    """Yield variants that are none, and folders that two things would share."""
    options = parts.sections.get(section)
    if not isinstance(options, RequestSection) or parts.node(section) is None:
        return
    at = parts.key_at(section)
    if not has_onnx(parts.root):
        what = f"{section} is written, and formats leaves out onnx; it is made of ONNX models"
        yield Fault(what, at, f"add `onnx` to formats, or remove `{section}`")
        return
    if not options.requested:
        what = f"{section} names nothing to make; expected one of {', '.join(options.added)}"
        yield Fault(
            what, at, f"write `{section}: {{{options.added[0]}: {{}}}}`, or remove `{section}`"
        )
    if parts.sound("quantization"):
        yield from _variants(parts, section, options)


def _variants(parts: Parts, section: str, options: RequestSection) -> Iterator[Fault]:
    bundles = list(parts.variants)
    if isinstance(options, PackagesOptions):
        bundles = [
            each for name in parts.variants for each in bundles_of(parts.sections.values(), name)
        ]
    for number, name in enumerate(options.variants):
        if name not in bundles:
            near = nearest(name, bundles)
            what = hinted(f"{section}.variants names '{name}', which is no variant", near)
            at = parts.at(section, "variants", number)
            yield Fault(what, at, f"write {near or choices(bundles)}")
    for folder in options.folders(bundles):
        if folder in parts.variants:
            what = f"variant '{folder}' has the name of a folder that {section} makes"
            at = parts.key_at("quantization", folder)
            yield Fault(what, at, "rename the variant")
