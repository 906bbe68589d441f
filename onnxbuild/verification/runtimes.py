"""The packages that run a bundle's model, each with the step that judges it and what that step takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from onnxbuild.core.params import from_json
from onnxbuild.core.target import Link, Target, TargetGates
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.onnxkit.loaders.script import Runtime
from onnxbuild.onnxkit.programs.artifact_file import described, write_description
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.providers import full_name, short_name
from onnxbuild.steps import validate, validate_program
from onnxbuild.verification.allowed import refused_options, refused_settings


@dataclass(frozen=True, slots=True)
class Judge:
    """The step that judges a model on a target.

    Attributes:
        kind: Its kind.
        params: Its parameters, with the tolerances that the release records.
        input: The name of its input that is the model.
        model: Returns that input, given the model's file and a folder to write to.
        on_cpu: The target is the CPU, where every model must run.
        refused: Why the model may not be run as its manifest says; empty if it may.
        lacks: Something that the target needs and a release does not hold; empty if nothing.
        fix: What to do then.
    """

    kind: str
    params: object
    input: str
    model: Callable[[Path, Path], Path]
    on_cpu: bool = True
    refused: str = ""
    lacks: str = ""
    fix: str = ""


def _onnxruntime(manifest: Manifest, bundle: Path, provider: str) -> Judge:
    """Judge a model by `validate`; on a target that it was not validated on as on the first."""
    target, settings, lacks = _target(manifest, provider)
    options = (refused_options(link.provider, link.options) for link in target.chain)
    refused = refused_settings(settings.config) or next(filter(None, options), "")
    folders = dict.fromkeys(manifest.folder_options or (), str(bundle.absolute()))
    links = (replace(link, options={**link.options, **folders}) for link in target.chain)
    params = validate.ValidateParams(
        variant=manifest.bundle,
        precision=manifest.precision,
        tolerances=_tolerances(manifest, provider),
        target=replace(target, chain=tuple(links)),
        gates=TargetGates(),
        session=settings,
    )
    return Judge(
        validate.KIND.name,
        params,
        "model",
        lambda file, _: file,
        on_cpu=target.is_cpu,
        refused=refused,
        lacks=lacks,
        fix="name a provider of the ONNX Runtime that is here: `--provider cpu`",
    )


def _target(manifest: Manifest, name: str) -> tuple[Target, SessionSettings, str]:
    """Return a target of the manifest, its session, and what a release lacks of it.

    A name that is no target of the manifest is a provider's, with the first target's session.
    """
    targets = manifest.targets or {}
    detail = targets.get(name)
    if detail is None:
        options = {each.name: each.options for each in manifest.providers or ()}
        link = Link(name, options.get(full_name(name), {}))
        first = manifest.session or next(iter(targets.values())).session
        return Target(name, (link,)), first, ""
    links = tuple(Link(short_name(each.name), each.options) for each in detail.chain)
    lacks = ""
    if detail.library is not None:
        lacks = f"'{name}' is a plug-in, and its library {detail.library} is not in a release"
    elif detail.environment is not None:
        lacks = f"'{name}' runs in an environment of its own, which is not in a release"
    return Target(name, links), detail.session, lacks


def _torch(manifest: Manifest, _: Path, provider: str) -> Judge:
    """Judge a program by `validate-program`."""
    description = described(manifest)

    def artifact(file: Path, folder: Path) -> Path:
        made = folder / "program"
        made.mkdir()
        write_description(made, description)
        (made / description.file).symlink_to(file.absolute())
        return made

    tolerances = _tolerances(manifest, provider)
    params = validate_program.ValidateProgramParams(description.format, tolerances)
    refused = _other_torch(manifest)
    return Judge(validate_program.KIND.name, params, "program", artifact, refused=refused)


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


RUNTIMES: Mapping[Runtime, Callable[[Manifest, Path, str], Judge]] = {
    "onnxruntime": _onnxruntime,
    "torch": _torch,
}
"""Runtime of a kind of bundles -> the judge of one of them, in a folder, on a target."""
