"""Catalog of all features: what a recipe may ask for. A new one is a file, and a line here; plug-ins bring more."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import field, make_dataclass, replace
from typing import Any, TypeVar

from onnxbuild.core.step import StepKind
from onnxbuild.expansion.artifacts import SECTION as AHEAD_OF_TIME
from onnxbuild.expansion.feature import (
    ArtifactFormat,
    Feature,
    Frontend,
    Mode,
    ProgramFormat,
    Section,
    SourceFormat,
)
from onnxbuild.expansion.limits import described
from onnxbuild.expansion.model_source import ModelSource
from onnxbuild.expansion.package_format import PackageFormat
from onnxbuild.expansion.plugin import Plugin, kind_of_plugin
from onnxbuild.expansion.requested import PACKAGES, attribute
from onnxbuild.features.artifacts import compiled, offline, optimized, ort, tensorrt
from onnxbuild.features.formats import aotinductor, torch_export, torchscript
from onnxbuild.features.frontends import (
    boosters,
    exported,
    jax,
    onnx,
    pytorch,
    saved_model,
    sklearn,
    tflite,
    torchscript_file,
)
from onnxbuild.features.gates import check, connections, evaluate, fidelity, generate, validate
from onnxbuild.features.measures import benchmark, load_times, profile, report, sensitivity
from onnxbuild.features.modes import auto, bf16, dynamic, fp16, fp32, static, weight_only
from onnxbuild.features.packages import (
    bundle,
    cpp,
    genai,
    http_server,
    mlflow,
    node,
    oci,
    ort_mobile,
    pipeline,
    shared_weights,
    triton,
    web,
    wheel,
)
from onnxbuild.features.settings import (
    ahead_of_time,
    calibration,
    operators,
    optimize,
    packages,
    processing,
    reference,
    release,
    session,
    target,
)
from onnxbuild.features.sources import diffusers, gguf, keras, onnx_text, transformers
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.providers import use_providers

FEATURES: tuple[Feature, ...] = (
    pytorch.FEATURE,
    onnx.FEATURE,
    transformers.FEATURE,
    diffusers.FEATURE,
    gguf.FEATURE,
    keras.FEATURE,
    onnx_text.FEATURE,
    saved_model.FEATURE,
    tflite.FEATURE,
    jax.FEATURE,
    exported.FEATURE,
    torchscript_file.FEATURE,
    sklearn.FEATURE,
    boosters.XGBOOST_FEATURE,
    boosters.LIGHTGBM_FEATURE,
    reference.FEATURE,
    operators.FEATURE,
    optimize.FEATURE,
    calibration.FEATURE,
    fp32.FEATURE,
    fp16.FEATURE,
    bf16.FEATURE,
    dynamic.FEATURE,
    static.FEATURE,
    weight_only.FEATURE,
    auto.FEATURE,
    check.FEATURE,
    connections.FEATURE,
    fidelity.FEATURE,
    validate.FEATURE,
    session.FEATURE,
    profile.FEATURE,
    evaluate.FEATURE,
    generate.FEATURE,
    sensitivity.FEATURE,
    benchmark.FEATURE,
    torchscript.FEATURE,
    torch_export.FEATURE,
    aotinductor.FEATURE,
    ahead_of_time.FEATURE,
    load_times.FEATURE,
    ort.FEATURE,
    offline.FEATURE,
    optimized.FEATURE,
    compiled.FEATURE,
    tensorrt.FEATURE,
    bundle.FEATURE,
    triton.FEATURE,
    mlflow.FEATURE,
    oci.FEATURE,
    web.FEATURE,
    wheel.FEATURE,
    node.FEATURE,
    cpp.FEATURE,
    ort_mobile.FEATURE,
    http_server.FEATURE,
    shared_weights.FEATURE,
    genai.FEATURE,
    pipeline.FEATURE,
    packages.FEATURE,
    processing.FEATURE,
    target.FEATURE,
    release.FEATURE,
    report.FEATURE,
)
"""Built-in features, in the order in which gates judge, reports are laid, and the reference page lists them."""

Value = TypeVar("Value")

Family = TypeVar("Family", bound=Feature)


class Composition:
    """This package's features, and those of plug-ins that are sound.

    Attributes:
        plugins: All that are there, the faulty ones, too.
        features: In the order of FEATURES; those of plug-ins last.
        kinds: Step kinds by name.
        plugin_of: Step kind that a plug-in brings -> the plug-in.
    """

    def __init__(self, plugins: tuple[Plugin, ...] = ()) -> None:
        self.plugins = plugins
        self.features = (*FEATURES, *(each for plugin in plugins for each in plugin.features))
        self.frontends = self._of(Frontend)
        self.model_sources = {
            **{n: each.model_source for n, each in self.frontends.items() if each.model_source},
            **{name: each.source for name, each in self._of(SourceFormat).items()},
        }
        self.modes = self._of(Mode)
        self.program_formats = self._of(ProgramFormat)
        self.artifact_formats = self._of(ArtifactFormat)
        self.released_formats = self._of(PackageFormat)
        self.package_formats = {n: e for n, e in self.released_formats.items() if e.is_asked}
        self.kinds = {kind.name: kind for each in FEATURES for kind in each.kinds}
        self.plugin_of: dict[str, Plugin] = {}
        for plugin in plugins:
            for kind in (kind for each in plugin.features for kind in each.kinds):
                self.kinds[kind.name] = kind_of_plugin(kind, plugin)
                self.plugin_of[kind.name] = plugin
        self.sections = {each.name: each for each in self._sections()}

    def _of(self, family: type[Family]) -> dict[str, Family]:
        return {each.name: each for each in self.features if isinstance(each, family)}

    def _sections(self) -> Iterable[Section]:
        """The sections of all features; some have a key for each feature of a family."""
        precisions = {
            name: each for mode in self.modes.values() for name, each in mode.tolerances.items()
        }
        added: dict[str, dict[str, tuple[type, str]]] = {
            AHEAD_OF_TIME: {
                each.name: (each.options, each.help) for each in self.artifact_formats.values()
            },
            PACKAGES: {
                each.name: (each.options, each.help) for each in self.package_formats.values()
            },
            validate.NAME: {
                name: (VariantTolerances, f"default: {described(each)}")
                for name, each in precisions.items()
            },
        }
        below = {k: v for each in self.package_formats.values() for k, v in each.below.items()}
        for feature in self.features:
            for section in feature.sections:
                keys = added.get(section.name)
                if keys is None:
                    yield section
                elif keys:
                    files = below if section.name == PACKAGES else section.below
                    yield _composed(replace(section, below=files), keys)


def _composed(section: Section, keys: Mapping[str, tuple[type, str]]) -> Section:
    """A section with more keys, each of which may be left out: key -> (options type of what stands below it, help)."""
    fields: list[tuple[str, Any, Any]] = [
        (attribute(key), options | None, field(default=None, metadata={"help": text, "key": key}))
        for key, (options, text) in keys.items()
    ]
    base = section.options
    made = make_dataclass(
        base.__name__, fields, bases=(base,), namespace={"added": tuple(keys)}, frozen=True
    )
    made.__doc__, made.__module__ = base.__doc__, __name__  # where a stored recipe finds it
    return replace(section, options=made)


_BUILT_IN = Composition()


_COMPOSITION: ContextVar[Composition] = ContextVar("composition", default=_BUILT_IN)
"""Features that this thread or task uses now: another one may build with other plug-ins meanwhile."""


def use_plugins(plugins: Iterable[Plugin]) -> None:
    """Use these plug-ins, and no others, from now on in this thread or task.

    Args:
        plugins: Their names are not taken, and none that is faulty has features.
    """
    found = tuple(plugins)
    _COMPOSITION.set(Composition(found) if found else _BUILT_IN)  # whose types are compared
    use_providers(provider for each in found for provider in each.providers)


def composition() -> Composition:
    """Return what this thread uses now: another object after a change of plug-ins."""
    return _COMPOSITION.get()


def plugins() -> tuple[Plugin, ...]:
    """Return the plug-ins that are there, the faulty ones, too."""
    return _COMPOSITION.get().plugins


def all_features() -> tuple[Feature, ...]:
    """Return every feature, those of plug-ins last."""
    return _COMPOSITION.get().features


def forms_of_kinds() -> dict[str, str]:
    """Return step kind -> the form that shows its reports, of all features."""
    return {kind: form for each in all_features() for kind, form in each.shown.items()}


class _Now(Mapping[str, Value]):
    """A part of what this thread uses now: whoever imports it sees the plug-ins that come later."""

    def __init__(self, part: Callable[[Composition], Mapping[str, Value]]) -> None:
        self._part = part

    def __getitem__(self, name: str) -> Value:
        return self._part(_COMPOSITION.get())[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._part(_COMPOSITION.get()))

    def __len__(self) -> int:
        return len(self._part(_COMPOSITION.get()))


FRONTENDS: Mapping[str, Frontend] = _Now(lambda now: now.frontends)


MODEL_SOURCES: Mapping[str, ModelSource] = _Now(lambda now: now.model_sources)


MODES: Mapping[str, Mode] = _Now(lambda now: now.modes)


PROGRAM_FORMATS: Mapping[str, ProgramFormat] = _Now(lambda now: now.program_formats)


ARTIFACT_FORMATS: Mapping[str, ArtifactFormat] = _Now(lambda now: now.artifact_formats)


PACKAGE_FORMATS: Mapping[str, PackageFormat] = _Now(lambda now: now.package_formats)
"""Package formats that recipes ask for below `packages`."""

RELEASED_FORMATS: Mapping[str, PackageFormat] = _Now(lambda now: now.released_formats)
"""Package formats that releases hold: those, and what a section of its own asks for."""


SECTIONS: Mapping[str, Section] = _Now(lambda now: now.sections)


CATALOG: Mapping[str, StepKind] = _Now(lambda now: now.kinds)
"""Step kinds by name."""


def __getattr__(name: str) -> type:
    """Return an options type that was composed, under the name by which a stored recipe finds it."""
    for section in _COMPOSITION.get().sections.values():
        if (section.options.__module__, section.options.__name__) == (__name__, name):
            return section.options
    raise AttributeError(name)


def extra_of(package: str) -> str:
    """Return the optional extra of onnxbuild that brings a package for some feature's steps; empty if none does."""
    return next((each.extras[package] for each in all_features() if package in each.extras), "")


def needing(member: str) -> str:
    """Return how recipes ask for what needs a member of the toolchain: `packages: {node, web}`; empty if nothing does."""
    found: dict[str, list[str]] = {}
    for each in all_features():
        if any(member in kind.toolchain for kind in each.kinds):
            found.setdefault(getattr(each, "written", "{}"), []).append(each.name)
    return ", ".join(text.format(", ".join(sorted(names))) for text, names in found.items())
