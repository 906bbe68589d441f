"""Check `ahead_of_time` against the rest of the recipe."""

from __future__ import annotations

from collections.abc import Iterator

from onnxbuild.core.provider import is_full_name
from onnxbuild.onnxkit.ahead_of_time.options import KINDS, AheadOfTimeOptions
from onnxbuild.providers import all_providers, full_name, is_known, named, short_name
from onnxbuild.recipe.parts.parts import Parts, has_onnx
from onnxbuild.recipe.yaml.faults import Fault, choices, hinted, nearest
from onnxbuild.recipe.yaml.node import locate, locate_key

SECTION = "ahead_of_time"


def check_ahead_of_time(parts: Parts) -> Iterator[Fault]:
    """Variants that are none, folders that two things would share, providers that compile nothing."""
    options = parts.sections.get(SECTION)
    if not isinstance(options, AheadOfTimeOptions) or parts.node(SECTION) is None:
        return
    at = locate_key(parts.root, (SECTION,))
    if not has_onnx(parts.root):
        what = f"{SECTION} is written, and formats leaves out onnx; it is made of ONNX models"
        yield Fault(what, at, f"add `onnx` to formats, or remove `{SECTION}`")
        return
    if not options.asked:
        what = f"{SECTION} names nothing to make; expected one of {', '.join(KINDS)}"
        yield Fault(what, at, f"write `{SECTION}: {{ort: {{}}}}`, or remove `{SECTION}`")
    if parts.sound("quantization"):
        yield from _variants(parts, options)
    if options.compiled is not None:
        yield from _provider(parts, options.compiled.provider)
        yield from _elsewhere(parts, "compiled", short_name(options.compiled.provider))
    if options.tensorrt is not None:
        yield from _elsewhere(parts, "tensorrt", "tensorrt")


def _variants(parts: Parts, options: AheadOfTimeOptions) -> Iterator[Fault]:
    for number, name in enumerate(options.variants):
        if name not in parts.variants:
            near = nearest(name, parts.variants)
            what = hinted(f"{SECTION}.variants names '{name}', which is no variant", near)
            at = locate(parts.root, (SECTION, "variants", number))
            yield Fault(what, at, f"write {near or choices(parts.variants)}")
    for folder in options.folders(parts.variants):
        if folder in parts.variants:
            what = f"variant '{folder}' has the name of a folder that {SECTION} makes"
            at = locate_key(parts.root, ("quantization", folder))
            yield Fault(what, at, "rename the variant")


def _elsewhere(parts: Parts, kind: str, provider: str) -> Iterator[Fault]:
    """A provider that the recipe knows in environments alone: what compiles is in none."""
    targets = [
        target
        for target in parts.targets.values()
        if any(link.provider == provider for link in target.chain)
    ]
    if targets and all(target.environment for target in targets):
        what = (
            f"{SECTION}.{kind} compiles with the ONNX Runtime of onnxbuild's environment; target "
            f"'{targets[0].name}' has '{provider}' in an environment of its own "
            f"({targets[0].environment})"
        )
        fix = (
            f"install an ONNX Runtime with {full_name(provider)} next to onnxbuild and take "
            f"`environment` out of that target, or remove `{kind}`"
        )
        yield Fault(what, locate_key(parts.root, (SECTION, kind)), fix)


def _provider(parts: Parts, provider: str) -> Iterator[Fault]:
    at = locate(parts.root, (SECTION, "compiled", "provider"))
    if not is_known(provider) and not is_full_name(provider):
        able = [each.name for each in all_providers() if not each.no_ep_context]
        near = nearest(provider, able)
        what = f"{SECTION}.compiled.provider is '{provider}', which is no execution provider"
        yield Fault(hinted(what, near), at, f"write {near or choices(able)}")
    elif reason := named(provider).no_ep_context:
        what = (
            f"{SECTION}.compiled.provider is '{provider}', which has no compiled models "
            f"(EPContext): {reason}"
        )
        fix = "write `provider: openvino`, or for the graph alone `optimized: {}`"
        yield Fault(what, at, fix)
