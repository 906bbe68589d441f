"""The rules that a plug-in keeps, so that a fault shows when it is loaded and not in the middle of a build."""

import dataclasses
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from onnxbuild.core.errors import PluginError
from onnxbuild.core.external_code import external_code
from onnxbuild.core.params import hints
from onnxbuild.core.provider import Provider, is_full_name
from onnxbuild.core.step import StepKind
from onnxbuild.expansion.feature import ArtifactFormat, Feature, Mode
from onnxbuild.expansion.package_format import PackageFormat
from onnxbuild.expansion.plugin import Plugin, family_of
from onnxbuild.plugins.guarded import column_faults, released_faults

RECIPE_KEYS = frozenset(
    {
        "version",
        "name",
        "description",
        "extends",
        "vars",
        "matrix",
        "components",
        "model",
        "frontend",
        "dummy_inputs",
        "state",
        "outputs",
        "dynamic_axes",
        "opset",
        "quantization",
        "formats",
        "providers",
    }
)
"""Keys of a recipe that are no section, and names that the schema has for parts of it."""

_PARTS = frozenset({"entrypoint", "dummy_input", "axis", "variant", "target", "link", "template"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_WORD = re.compile(r"[a-z][a-z0-9_]*")
_SCALARS = (bool, int, float, str, type(None))
_OWN = "onnxbuild itself"


class _UnreadableError(Exception):
    """Annotations that raise when they are evaluated."""


@dataclass(slots=True)
class Taken:
    """Names that are taken: (what it names, name) -> who has it.

    Attributes:
        names: Of features, kinds, sections, providers.
        tolerances: Precision -> what is allowed to it.
    """

    names: dict[tuple[str, str], str] = field(default_factory=dict)
    tolerances: dict[str, Any] = field(default_factory=dict)

    def add(self, features: Iterable[Feature], providers: Iterable[Provider], owner: str) -> None:
        """Take the names of what `owner` brings."""
        for feature in features:
            self.names |= dict.fromkeys(_names_of(feature), owner)
            if isinstance(feature, Mode):
                self.tolerances |= feature.tolerances
        for provider in providers:
            self.names |= dict.fromkeys(_names_of_provider(provider), owner)


def checked(
    plugins: Iterable[Plugin], features: Iterable[Feature], providers: Iterable[Provider]
) -> tuple[Plugin, ...]:
    """Return plug-ins with what is wrong with each; one that takes a name that is taken is faulty.

    Args:
        plugins: As they were loaded; of two that take one name, the later is faulty.
    """
    taken = Taken(dict.fromkeys((("column", "recipe"), ("column", "variant")), _OWN))
    taken.add(features, providers, _OWN)
    found = []
    for plugin in plugins:
        what = None if plugin.fault else next(_faults(plugin, taken), None)
        if what is None and not plugin.fault:
            taken.add(plugin.features, plugin.providers, plugin.label)
            found.append(plugin)
            continue
        where = plugin.file if plugin.of_project else f"{plugin.label} ({plugin.file})"
        fault = plugin.fault or PluginError(what or "", where=where, fix=plugin.mend)
        found.append(replace(plugin, features=(), providers=(), fault=fault))
    return tuple(found)


def _faults(plugin: Plugin, taken: Taken) -> Iterator[str]:
    """Yield the faults of a plug-in, the first thing first."""
    if not plugin.features and not plugin.providers:
        yield "the plug-in brings nothing: no Feature, no Provider, no StepKind"
    if plugin.of_project and plugin.providers:
        yield (
            f"the provider '{plugin.providers[0].name}' is in a file of the project: steps that are "
            "not the plug-in's would use it without its content in their keys; only a distribution "
            "can bring a provider"
        )
    for feature in plugin.features:
        yield from _feature_faults(feature, taken)
    for provider in plugin.providers:
        yield from _provider_faults(provider)
    own: dict[tuple[str, str], str] = {}
    named = [key for feature in plugin.features for key in _names_of(feature)]
    named += [key for provider in plugin.providers for key in _names_of_provider(provider)]
    for key in named:
        owner = taken.names.get(key) or own.get(key)
        if owner:
            yield f"the {key[0]} '{key[1]}' is taken: {owner} has one of that name"
        own[key] = "the plug-in itself"


def _names_of(feature: Feature) -> Iterator[tuple[str, str]]:
    yield family_of(feature), str(feature.name)
    for section in feature.sections:
        yield "key of recipes", section.name
        for name, _ in section.callables.values():
            yield "callable", name
    for kind in feature.kinds:
        yield "step kind", kind.name
    for column in feature.columns:
        yield "column", column.title


def _names_of_provider(provider: Provider) -> Iterator[tuple[str, str]]:
    for name in dict.fromkeys((provider.name, provider.full_name)):
        yield "provider", name


def _feature_faults(feature: Feature, taken: Taken) -> Iterator[str]:
    family = family_of(feature)
    label = f"the {family} '{feature.name}'"
    if family != "feature" and not _is_name(feature.name):
        yield f"{label} has no usable name; expected letters, digits, '.', '_' and '-'"
    for section in feature.sections:
        if not (isinstance(section.name, str) and _WORD.fullmatch(section.name)):
            yield f"{label} brings the key {section.name!r}; expected small letters, digits and '_'"
        if section.name in RECIPE_KEYS | _PARTS:
            yield f"the key of recipes '{section.name}' is taken: {_OWN} has one of that name"
        yield from _option_faults(section.options, f"options of the key '{section.name}'")
    options = getattr(feature, "options", None)
    if options is not None:
        yield from _option_faults(options, f"options of {label}")
    if isinstance(feature, (ArtifactFormat, PackageFormat)) and not feature.help:
        yield f"{label} has no help; expected one line"
    if isinstance(feature, Mode):
        yield from _mode_faults(feature, label, taken)
    kinds: object = feature.kinds
    if not isinstance(kinds, tuple):
        yield f"{label} has kinds of {kinds!r:.200}; expected a tuple of StepKind"
        return
    for kind in kinds:
        yield from _kind_faults(kind)
    yield from column_faults(feature.columns, label)
    yield from released_faults(feature, label)


def _mode_faults(mode: Mode, label: str, taken: Taken) -> Iterator[str]:
    if mode.precision_of is None and mode.precision not in mode.tolerances:
        yield f"{label} has no tolerances for its precision '{mode.precision}'"
    for precision, allowed in mode.tolerances.items():
        if taken.tolerances.get(precision, allowed) != allowed:
            yield f"{label} has other tolerances for the precision '{precision}' than another mode has"
    if mode.kept_nodes is not None:
        options = () if mode.options is None else dataclasses.fields(mode.options)
        if mode.kept_nodes.option not in {each.name for each in options}:
            yield f"{label} leaves nodes in fp32 by '{mode.kept_nodes.option}', which is no option of it"


def _kind_faults(kind: object) -> Iterator[str]:
    if not isinstance(kind, StepKind):
        yield f"{kind!r} is listed as a step kind; expected a StepKind"
        return
    label = f"the step kind '{kind.name}'"
    if not _is_name(kind.name):
        yield f"{label} has no usable name; expected letters, digits, '.', '_' and '-'"
    if type(kind.version) is not int or kind.version < 1:
        yield (
            f"{label} has the version {kind.version!r}; expected an integer from 1 up, raised "
            "whenever run() makes another output of equal inputs"
        )
    if not (isinstance(kind.params, type) and dataclasses.is_dataclass(kind.params)):
        yield f"{label} has params of {kind.params!r}; expected a frozen dataclass"
    elif not kind.params.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        yield f"the params of {label} can be changed; expected a dataclass with frozen=True"
    outputs: object = kind.outputs
    if not isinstance(outputs, Mapping) or not outputs:
        yield f"{label} declares no outputs; expected name -> artifact kind"
    for each in ("inputs", "toolchain"):
        value = getattr(kind, each)
        if isinstance(value, str) or not all(isinstance(name, str) for name in value):
            yield f"{label} has {each} of {value!r}; expected a tuple of names"
    run: object = kind.run
    if not callable(run):
        yield f"{label} has a run that is no function"


def _option_faults(options: object, label: str) -> Iterator[str]:
    """Yield what the schema and the reader of a recipe can't interpret in a class of options."""
    if not (isinstance(options, type) and dataclasses.is_dataclass(options)):
        yield f"the {label} are {options!r}; expected a frozen dataclass"
        return
    if not (options.__doc__ or "").strip() or (options.__doc__ or "").startswith(
        f"{options.__name__}("
    ):
        yield f"the {label} ({options.__name__}) have no docstring; its first line is the help"
    try:
        with external_code(_UnreadableError):
            annotations = hints(options)
    except _UnreadableError as error:
        yield f"the annotations of the {label} can't be read: {error}"
        return
    for each in dataclasses.fields(options):
        if not str(each.metadata.get("help", "")).strip():
            yield f"the option '{each.name}' of the {label} has no help; write option(..., help=...)"
        has_no_default = each.default is dataclasses.MISSING
        if has_no_default and each.default_factory is dataclasses.MISSING:
            yield f"the option '{each.name}' of the {label} has no default"
        for inner in _parts_of(annotations[each.name]):
            if dataclasses.is_dataclass(inner):
                yield from _option_faults(inner, f"option '{each.name}' of the {label}")
            elif inner not in _SCALARS:
                yield (
                    f"the option '{each.name}' of the {label} is of type {inner!r}; expected bool, "
                    "int, float, str, Literal, tuple, Mapping, or a dataclass of such"
                )


def _parts_of(annotation: Any) -> Iterator[Any]:
    """The plain types and dataclasses that an annotation is made of."""
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        return
    if origin in (typing.Union, types.UnionType, tuple, dict, Mapping):
        for each in typing.get_args(annotation):
            if each is not Ellipsis:
                yield from _parts_of(each)
    else:
        yield annotation


def _provider_faults(provider: Provider) -> Iterator[str]:
    if not _is_name(provider.name):
        yield f"the provider '{provider.name}' has no usable name"
    if not is_full_name(provider.full_name):
        yield (
            f"the provider '{provider.name}' has the full name '{provider.full_name}'; expected "
            "ONNX Runtime's, which ends in ExecutionProvider"
        )
    for name, each in (provider.options or {}).items():
        if not each.help.strip():
            yield f"the option '{name}' of the provider '{provider.name}' has no help"


def _is_name(name: object) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None
