"""Targets that can't be meant: unknown providers, chains that end before they begin."""

import re
from collections.abc import Iterator

from onnxbuild.core.provider import OptionGroup, is_full_name
from onnxbuild.core.target import CPU
from onnxbuild.document.faults import Fault, choices, hinted, nearest, show
from onnxbuild.document.node import Node
from onnxbuild.document.parts import Parts
from onnxbuild.providers import all_providers, is_known, named, provider_names
from onnxbuild.recipe.parts.keys import NAME, PATTERN_WORDS
from onnxbuild.recipe.parts.targets import LinkNode, TargetNode, target_nodes
from onnxbuild.recipe.schema.explain import meant


def check_providers(parts: Parts) -> Iterator[Fault]:
    """Yield the faults under `providers`, in any of its forms."""
    seen: set[str] = set()
    for target in target_nodes(parts.node("providers")):
        if not parts.sound(*target.path):
            continue
        if target.name in seen:
            what = f"providers names '{target.name}' twice; expected each once"
            fix = f"remove one of the two, or name it: `{target.name}-2: {{provider: ...}}`"
            yield Fault(what, target.at, fix)
        seen.add(target.name)
        yield from _names(target)
        yield from _keys(target)
        yield from _chain(target)
        for link in target.links:
            for group in named(link.provider).groups:
                yield from _incomplete(link, group)
    yield from _searched(parts)


def _names(target: TargetNode) -> Iterator[Fault]:
    library = None if target.own is None else target.own.child("library")
    by_own_name = [link.at for link in target.links] == [target.at]
    for link in target.links:
        name = link.provider
        if is_known(name) or is_full_name(name) or library is not None:
            continue
        known = provider_names()
        near = meant(name, list(known)) or nearest(
            name, (each.full_name for each in all_providers())
        )
        what = f"there is no provider {show(name)}"
        fix = f"write `{near}`" if near else f"name a provider: `{name}: {{provider: cuda}}`"
        if not by_own_name and not near:
            fix = "write one of these, or ONNX Runtime's own name, `...ExecutionProvider`"
        yield Fault(hinted(what, near, f"expected {choices(known)}"), link.at, fix)
    if not by_own_name and not re.search(NAME.replace("$", r"\Z"), target.name):
        what = f"target {show(target.name)} has a name that can't be a file's"
        yield Fault(what, target.at, f"use {PATTERN_WORDS[NAME]}")


def _keys(target: TargetNode) -> Iterator[Fault]:
    """Keys that exclude one another."""
    own = target.own
    if own is None:
        return
    if own.child("chain") is not None:
        others = [key for key in own.members if key in ("provider", "library")]
        others += [key for key in own.members if key not in _WITH_CHAIN]
        for key in dict.fromkeys(others):
            what = f"target '{target.name}' has both {key} and chain"
            fix = "remove it" if key in ("provider", "library") else "move it to a provider"
            yield Fault(what, own.members[key].at, f"{fix}: `chain: [{{cuda: {{...}}}}, cpu]`")
    if [link.provider for link in target.links] == [CPU]:
        for key in ("max_cpu_nodes", "min_coverage"):
            if own.child(key) is not None:
                what = f"{key} of the CPU itself has no effect: all nodes run there"
                yield Fault(what, own.members[key].at, "remove it, or move it to another target")


_WITH_CHAIN = (
    "chain", "provider", "library", "environment", "require", "max_cpu_nodes", "min_coverage"
)  # fmt: skip


def _chain(target: TargetNode) -> Iterator[Fault]:
    names = [link.provider for link in target.links]
    for n, link in enumerate(target.links):
        if link.provider in names[:n]:
            what = f"the chain names '{link.provider}' twice; expected each once"
            yield Fault(what, link.at, "remove one of the two")
        elif link.provider == CPU and n < len(names) - 1:
            what = f"cpu runs every node, and comes before '{names[n + 1]}', which gets none"
            yield Fault(what, link.at, "write `cpu` last")


def _incomplete(link: LinkNode, group: OptionGroup) -> Iterator[Fault]:
    written = [key for key in group.names if key in link.options]
    missing = [key for key in group.names if key not in link.options]
    if written and missing and group.shorthand not in link.options:
        what = f"{written[0]} is set without {' and '.join(missing)}; {group.why}"
        fix = f"add the rest, or write `{group.shorthand}: true`"
        yield Fault(what, link.options[written[0]].at, fix)


def _searched(parts: Parts) -> Iterator[Fault]:
    """A search measures on the first target, which has to be there then."""
    searches = [name for name, each in parts.variants.items() if each.searches]
    targets = target_nodes(parts.node("providers"))
    if not searches or not targets or not parts.sound(*targets[0].path):
        return
    asked: Node | None = None if targets[0].own is None else targets[0].own.child("require")
    if asked is not None and asked.value is False:
        what = (
            f"variant '{searches[0]}' has mode '{parts.variants[searches[0]].mode}', which measures on the first target, "
            f"'{targets[0].name}', and that has `require: false`"
        )
        yield Fault(what, asked.at, "remove it, or put another target first")
