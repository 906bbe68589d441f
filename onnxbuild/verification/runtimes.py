"""The packages that run a bundle's model: for each the step that judges it, and its inputs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from onnxbuild.catalog import plugins
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import from_json
from onnxbuild.core.target import Link, Target, TargetGates
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.onnxkit.loaders.script import Runtime
from onnxbuild.onnxkit.programs.artifact_file import described, write_description
from onnxbuild.onnxkit.sessions.custom_operators import other_platform, paths_for_this_platform
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.providers import full_name, short_name
from onnxbuild.steps import validate, validate_program
from onnxbuild.verification.allowed import refused_options, refused_settings
from onnxbuild.verification.fenced_replay import Replay
from onnxbuild.verification.replay_context import ReplayRequest


class RefusedError(Exception):
    """A model is not run here as its manifest says; the message says why."""


def _onnxruntime(manifest: Manifest, provider: str, asked: ReplayRequest, scratch: Path) -> Replay:
    """Judge a model by `validate`; on a target that it was not validated on as on the first."""
    target, settings = _target(manifest, provider)
    options = (refused_options(link.provider, link.options) for link in target.chain)
    if reason := refused_settings(settings.config) or next(filter(None, options), ""):
        raise RefusedError(reason)
    libraries = paths_for_this_platform(asked.bundle.absolute(), manifest.operators or ())
    if manifest.operators and not libraries:
        raise RefusedError(other_platform(manifest.operators))
    folders = dict.fromkeys(manifest.folder_options or (), str(asked.bundle.absolute()))
    links = (replace(link, options={**link.options, **folders}) for link in target.chain)
    params = validate.ValidateParams(
        variant=manifest.bundle,
        precision=manifest.precision,
        tolerances=_tolerances(manifest, provider),
        target=replace(target, chain=tuple(links)),
        gates=TargetGates(),
        session=settings,
    )
    return Replay(
        validate.KIND.name,
        params,
        f"{manifest.name}:{manifest.bundle} on {provider}",
        {"model": asked.bundle / manifest.file, "reference": asked.golden},
        (asked.bundle, asked.golden),
        scratch / "own",
        asked.timeout_s,
        on_cpu=target.is_cpu,
        libraries=libraries,
        plugins=_plugins_of(target),
    )


def _plugins_of(target: Target) -> tuple[str, ...]:
    """The distributions that bring an execution provider of a target."""
    chain = {link.provider for link in target.chain}
    return tuple(
        each.name
        for each in plugins()
        if not each.of_project and chain & {provider.name for provider in each.providers}
    )


def _torch(manifest: Manifest, provider: str, asked: ReplayRequest, scratch: Path) -> Replay:
    """Judge a program by `validate-program`."""
    if reason := _other_torch(manifest):
        raise RefusedError(reason)
    description = described(manifest)
    artifact = scratch / "program"
    artifact.mkdir()
    write_description(artifact, description)
    (artifact / description.file).symlink_to((asked.bundle / manifest.file).absolute())
    tolerances = _tolerances(manifest, provider)
    return Replay(
        validate_program.KIND.name,
        validate_program.ValidateProgramParams(description.format, tolerances),
        f"{manifest.name}:{manifest.bundle}",
        {"program": artifact, "reference": asked.golden},
        (artifact, asked.bundle, asked.golden),
        scratch / "own",
        asked.timeout_s,
        on_cpu=True,
    )


def _target(manifest: Manifest, name: str) -> tuple[Target, SessionSettings]:
    """Return a target of the manifest, and its session.

    A name that is no target of the manifest is a provider's, with the first target's session.

    Raises:
        StepError: The target needs something that is not in a release.
    """
    targets = manifest.targets or {}
    detail = targets.get(name)
    if detail is None:
        options = {each.name: each.options for each in manifest.providers or ()}
        first = manifest.session or next(iter(targets.values())).session
        return Target(name, (Link(name, options.get(full_name(name), {})),)), first
    if detail.library is not None:
        raise StepError(
            f"'{name}' is a plug-in, and its library {detail.library} is not in a release",
            fix="name a provider that ONNX Runtime holds: `--provider cpu`",
        )
    if detail.environment is not None:
        raise StepError(
            f"'{name}' runs in an environment of its own, which is not in a release",
            fix="name a provider of the ONNX Runtime that is here: `--provider cpu`",
        )
    links = tuple(Link(short_name(each.name), each.options) for each in detail.chain)
    return Target(name, links), detail.session


def _other_torch(manifest: Manifest) -> str:
    """Return why the PyTorch that is here can't run a program; empty if it can."""
    try:
        here = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "PyTorch is not installed: pip install torch"
    made_by = manifest.versions["torch"]
    if manifest.made_for is not None and here != made_by:
        return f"its machine code needs torch {made_by}; this is {here}"
    return ""


def _tolerances(manifest: Manifest, provider: str) -> VariantTolerances:
    recorded = manifest.validation
    judged_by = recorded.get(provider) or next(iter(recorded.values()))
    return from_json(VariantTolerances, judged_by.tolerances)


RUNTIMES: Mapping[Runtime, Callable[[Manifest, str, ReplayRequest, Path], Replay]] = {
    "onnxruntime": _onnxruntime,
    "torch": _torch,
}
"""Runtime of a kind of bundles -> the run of the step that judges one on a target, in a scratch folder."""
