"""The golden inputs through a release's models, here and now."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxbuild.core.errors import EXIT_GATE, StepError, UsageError, did_you_mean
from onnxbuild.core.params import from_json
from onnxbuild.core.providers import PROVIDERS, full_name, short_name
from onnxbuild.core.target import Link, Target, TargetGates
from onnxbuild.onnxkit.session_settings import settings_from
from onnxbuild.release_format.bundles import FORMATS, VARIANTS, section_bundles
from onnxbuild.release_format.forms import following
from onnxbuild.release_format.layout import MANIFEST
from onnxbuild.release_format.released import Released
from onnxbuild.steps import validate
from onnxbuild.verification.replay_context import ReplayContext, Replayed
from onnxbuild.verification.replay_others import replay_made_ahead, replay_program
from onnxbuild.verification.verify import Checked


def replay(
    bundle: Path, golden: Path, scratch: Path, *, providers: Sequence[str] = ()
) -> Iterator[Replayed]:
    """Run a variant on every provider that it was validated on and that is at hand.

    Args:
        bundle: The variant's folder.
        golden: The reference's folder: inputs and PyTorch's outputs.
        scratch: For reports that nobody reads.
        providers: Short names; empty for those that the manifest names.

    Raises:
        NotReproducibleError: The manifest can't be followed.
        StepError: A provider that was asked for does not load, or refuses the model.
    """
    with following(f"{bundle.name}/{MANIFEST}"):
        manifest = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
        names = list(providers or manifest["validation"])
    for provider in names:
        where = f"{manifest['name']}:{manifest['variant']} on {provider}"
        try:
            with following(f"{bundle.name}/{MANIFEST}"):
                params = _params(manifest, provider)
            context = ReplayContext(params, where, scratch, {"model": bundle, "reference": golden})
            outcome = validate.run(context)
        except StepError as error:
            if provider in providers:
                raise
            yield Replayed(manifest["variant"], provider, {}, skipped=error.what)
            continue
        metrics = dict(outcome.metrics)
        skipped = str(metrics.pop("skipped", ""))
        yield Replayed(manifest["variant"], provider, metrics, outcome.findings, skipped)


def _params(manifest: Mapping[str, Any], provider: str) -> validate.ValidateParams:
    """How a bundle is judged on a provider; as on the first, where it was not validated."""
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
    told = manifest["targets"].get(provider)
    return manifest["session"] if told is None else told["session"]


def _target(manifest: Mapping[str, Any], name: str) -> Target:
    """A target of the manifest, or a provider by its short name."""
    told = manifest["targets"].get(name)
    if told is None:
        options = {each["name"]: each["options"] for each in manifest["providers"]}
        return Target(name, (Link(name, dict(options.get(full_name(name), {}))),))
    if "library" in told:
        raise StepError(
            f"'{name}' is a plug-in, and its library {told['library']} is not in a release",
            fix="name a provider that ONNX Runtime holds: `--provider cpu`",
        )
    if "environment" in told:
        raise StepError(
            f"'{name}' runs in an environment of its own, which is not in a release",
            fix="name a provider of the ONNX Runtime that is here: `--provider cpu`",
        )
    links = (Link(short_name(each["name"]), dict(each["options"])) for each in told["chain"])
    return Target(name, tuple(links))


def check_providers(providers: Iterable[str]) -> None:
    """Refuse what is no short name of an execution provider.

    Raises:
        UsageError: One is none.
    """
    for provider in providers:
        if provider not in PROVIDERS:
            raise UsageError(
                f"there is no provider '{provider}'; expected one of {', '.join(PROVIDERS)}",
                fix=did_you_mean(provider, PROVIDERS) or f"--provider {next(iter(PROVIDERS))}",
            )


def verify_run(
    release: Released, providers: Sequence[str] = (), *, trust_programs: bool = False
) -> Iterator[Checked]:
    """Replay every bundle of a release.

    Args:
        release: Its files are what its checksums say.
        providers: Short names; empty for those that each manifest names.
        trust_programs: Run PyTorch's programs, too. They may do what any program may.

    Raises:
        UsageError: A provider has no such name.
        StepError: See `replay`.
        NotReproducibleError: A manifest can't be followed.
    """
    check_providers(providers)
    ran = 0
    with tempfile.TemporaryDirectory(prefix="onnxbuild-replay-") as folder:
        for section, name, told in section_bundles(release.about):
            bundle, golden = release.folder / told["bundle"], release.folder / told["golden"]
            scratch = Path(folder) / str(len(list(Path(folder).iterdir())))
            scratch.mkdir()
            if section == VARIANTS:
                found = replay(bundle, golden, scratch, providers=providers)
            elif section == FORMATS:
                found = replay_program(
                    bundle, golden, scratch, providers=providers, trusted=trust_programs
                )
            else:
                found = replay_made_ahead(bundle, golden, scratch, providers=providers)
            for each in found:
                ran += not each.skipped
                yield _checked(name, each)
    if not ran:
        what = "nothing that the release names could be run here"
        yield Checked("golden outputs", faults=(what,), exit_code=EXIT_GATE)


def _checked(name: str, each: Replayed) -> Checked:
    title = f"{name} on {each.provider}"
    if each.skipped:
        return Checked(title, each.skipped, skipped=True)
    metrics = each.metrics
    return Checked(
        title,
        f"{metrics['points']} golden points within tolerance{_shown(metrics)}",
        tuple(f"{finding.what} ({finding.where})" for finding in each.findings),
        exit_code=EXIT_GATE,
    )


def _shown(metrics: Mapping[str, Any]) -> str:
    """The worst measures; a model has float outputs, others, or both."""
    told = ""
    if metrics["max_abs"] is not None:
        told += (
            f", largest error {metrics['max_abs']:.1e}, worst cosine {metrics['cosine_min']:.5f}"
        )
    if metrics["equal_min"] is not None:
        told += f", least share of equal elements {metrics['equal_min']:.4f}"
    return told
