"""The golden inputs through a release's models, here and now, each in a fenced process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxbuild.adapters.kernel import landlock
from onnxbuild.adapters.processes.fenced_call import TIMEOUT_S
from onnxbuild.core.errors import (
    EXIT_GATE,
    EXIT_NOT_REPRODUCIBLE,
    StepError,
    UsageError,
    did_you_mean,
)
from onnxbuild.core.params import from_json
from onnxbuild.core.target import Link, Target, TargetGates
from onnxbuild.onnxkit.sessions.settings import SessionSettings, settings_from
from onnxbuild.providers import full_name, is_known, provider_names, short_name
from onnxbuild.release_format.bundles import FORMATS, VARIANTS, model_file, section_bundles
from onnxbuild.release_format.forms import following, read_json
from onnxbuild.release_format.layout import MANIFEST
from onnxbuild.release_format.released import Released
from onnxbuild.steps import validate
from onnxbuild.verification.allowed import (
    holds_compiled_nodes,
    refused_options,
    refused_settings,
)
from onnxbuild.verification.fenced_replay import UNTRUSTED, Replay, attempt
from onnxbuild.verification.replay_context import Asked, Replayed
from onnxbuild.verification.replay_others import replay_made_ahead, replay_program
from onnxbuild.verification.verify import Checked


def replay(asked: Asked) -> Iterator[Replayed]:
    """Run a variant on every provider that it was validated on and that is at hand.

    Raises:
        NotReproducibleError: The manifest can't be followed.
        StepError: A provider that was asked for does not load, or refuses the model.
    """
    place = f"{asked.bundle.name}/{MANIFEST}"
    with following(place):
        manifest = read_json((asked.bundle / MANIFEST).read_bytes())
        names = list(asked.providers or manifest["validation"])
        if not names:
            raise ValueError("it names no target that the model was validated on")
        variant = str(manifest["variant"])
        model = asked.bundle / model_file(manifest)
        untrusted = UNTRUSTED if holds_compiled_nodes(model) and not asked.trusted else ""
    for number, provider in enumerate(names):
        with following(place):
            try:
                params = _params(manifest, provider)
            except StepError as error:
                if provider in asked.providers:
                    raise
                yield Replayed(variant, provider, {}, skipped=error.what)
                continue
            reason = untrusted or _refused(params.session, params.target)
            run = Replay(
                "validate",
                params,
                f"{manifest['name']}:{variant} on {provider}",
                {"model": model, "reference": asked.golden},
                (asked.bundle, asked.golden),
                asked.scratch / str(number),
                asked.timeout_s,
            )
        if reason:
            yield Replayed(variant, provider, {}, skipped=reason)
            continue
        yield attempt(
            run,
            variant,
            provider,
            asked_for=provider in asked.providers,
            on_cpu=params.target.is_cpu,
        )


def _refused(settings: SessionSettings, target: Target) -> str:
    """Why a session of these is not opened here; empty if it may be."""
    options = (refused_options(link.provider, link.options) for link in target.chain)
    return refused_settings(settings.config) or next(filter(None, options), "")


def _params(manifest: Mapping[str, Any], provider: str) -> validate.ValidateParams:
    """How a bundle is judged on a provider; as on the first, where it was not validated.

    Raises:
        StepError: The target is not in a release.
    """
    recorded = manifest["validation"]
    judged_by = recorded.get(provider) or next(iter(recorded.values()))
    return validate.ValidateParams(
        variant=manifest["variant"],
        precision=manifest["precision"],
        tolerances=from_json(validate.VariantTolerances, judged_by["tolerances"]),
        target=_target(manifest, provider),
        gates=TargetGates(),
        session=settings_from(_session(manifest, provider)),
    )


def _session(manifest: Mapping[str, Any], provider: str) -> Any:
    """How sessions run on a target of the manifest; on others as on the first."""
    detail = manifest["targets"].get(provider)
    return manifest["session"] if detail is None else detail["session"]


def _target(manifest: Mapping[str, Any], name: str) -> Target:
    """A target of the manifest, or a provider by its short name."""
    detail = manifest["targets"].get(name)
    if detail is None:
        options = {each["name"]: each["options"] for each in manifest["providers"]}
        return Target(name, (Link(name, dict(options.get(full_name(name), {}))),))
    if "library" in detail:
        raise StepError(
            f"'{name}' is a plug-in, and its library {detail['library']} is not in a release",
            fix="name a provider that ONNX Runtime holds: `--provider cpu`",
        )
    if "environment" in detail:
        raise StepError(
            f"'{name}' runs in an environment of its own, which is not in a release",
            fix="name a provider of the ONNX Runtime that is here: `--provider cpu`",
        )
    links = (Link(short_name(each["name"]), dict(each["options"])) for each in detail["chain"])
    return Target(name, tuple(links))


def check_providers(providers: Iterable[str]) -> None:
    """Refuse what is no short name of an execution provider.

    Raises:
        UsageError: One is none.
    """
    known = provider_names()
    for provider in providers:
        if not is_known(provider):
            raise UsageError(
                f"there is no provider '{provider}'; expected one of {', '.join(known)}",
                fix=did_you_mean(provider, known) or f"--provider {known[0]}",
            )


def verify_run(
    release: Released,
    providers: Sequence[str] = (),
    *,
    trust_programs: bool = False,
    timeout_s: float = TIMEOUT_S,
) -> Iterator[Checked]:
    """Replay every bundle of a release.

    Args:
        release: Its files are what its checksums say.
        providers: Short names; empty for those that each manifest names.
        trust_programs: Run PyTorch's programs, engines and compiled models, too. They may do what
            any program may that the kernel fences in.
        timeout_s: Wall time that each may take.

    Raises:
        UsageError: A provider has no such name.
        StepError: See `replay`.
        NotReproducibleError: A manifest can't be followed.
    """
    check_providers(providers)
    if landlock.abi() == 0:
        detail = "this kernel has no Landlock: what the models do is not fenced in"
        yield Checked("fence", detail, skipped=True)
    ran = 0
    with tempfile.TemporaryDirectory(prefix="onnxbuild-replay-") as folder:
        for number, (section, name, told_of) in enumerate(section_bundles(release.about)):
            asked = Asked(
                bundle=release.folder / told_of["bundle"],
                golden=release.folder / told_of["golden"],
                scratch=Path(folder) / str(number),
                providers=providers,
                trusted=trust_programs,
                timeout_s=timeout_s,
            )
            asked.scratch.mkdir()
            replayed = {VARIANTS: replay, FORMATS: replay_program}.get(section, replay_made_ahead)
            for each in replayed(asked):
                ran += not each.skipped
                yield _checked(name, each)
    if not ran:
        what = "nothing that the release names could be run here"
        yield Checked("golden outputs", faults=(what,), exit_code=EXIT_GATE)


def _checked(name: str, each: Replayed) -> Checked:
    title = f"{name} on {each.provider}"
    if each.skipped:
        return Checked(title, each.skipped, skipped=True)
    if each.failed:
        return Checked(title, faults=(each.failed,), exit_code=EXIT_NOT_REPRODUCIBLE)
    findings = tuple(f"{finding.what} ({finding.where})" for finding in each.findings)
    if findings:
        return Checked(title, faults=findings, exit_code=EXIT_GATE)
    metrics = each.metrics
    return Checked(
        title,
        f"{metrics['points']} golden points within tolerance{_shown(metrics)}",
    )


def _shown(metrics: Mapping[str, Any]) -> str:
    """The worst measures; a model has float outputs, others, or both."""
    detail = ""
    if metrics["max_abs"] is not None:
        detail += (
            f", largest error {metrics['max_abs']:.1e}, worst cosine {metrics['cosine_min']:.5f}"
        )
    if metrics["equal_min"] is not None:
        detail += f", least share of equal elements {metrics['equal_min']:.4f}"
    return detail
