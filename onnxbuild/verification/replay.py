"""The golden inputs through a release's models, here and now."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.errors import EXIT_GATE, StepError, UsageError, did_you_mean
from onnxbuild.core.params import from_json
from onnxbuild.core.providers import PROVIDERS, full_name, short_name
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import Finding
from onnxbuild.core.target import Link, Target, TargetGates
from onnxbuild.onnxkit.session_settings import settings_from
from onnxbuild.release_format.forms import following
from onnxbuild.release_format.layout import MANIFEST
from onnxbuild.release_format.released import Released
from onnxbuild.steps import validate
from onnxbuild.verification.verify import Checked


@dataclass(frozen=True, slots=True)
class Replayed:
    """One variant on one provider.

    Attributes:
        metrics: Of the validate step: the worst of each measure over all golden points.
        findings: Breaches of the tolerances that the release records.
        skipped: Why it was not run; empty if it was.
    """

    variant: str
    provider: str
    metrics: dict[str, Any]
    findings: tuple[Finding, ...] = ()
    skipped: str = ""


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
            context = _Context(params, where, scratch, {"model": bundle, "reference": golden})
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
        session=settings_from(manifest.get("session", {})),
    )


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


def verify_run(release: Released, providers: Sequence[str] = ()) -> Iterator[Checked]:
    """Replay every variant of a release.

    Args:
        release: Its files are what its checksums say.
        providers: Short names; empty for those that each manifest names.

    Raises:
        UsageError: A provider has no such name.
        StepError: See `replay`.
        NotReproducibleError: A manifest can't be followed.
    """
    check_providers(providers)
    ran = 0
    with tempfile.TemporaryDirectory(prefix="onnxbuild-replay-") as scratch:
        for name, told in release.about["variants"].items():
            bundle, golden = release.folder / told["bundle"], release.folder / told["golden"]
            for each in replay(bundle, golden, Path(scratch), providers=providers):
                ran += not each.skipped
                yield _checked(name, each)
    if not ran:
        what = "no provider that the release names is at hand: nothing was run"
        yield Checked("golden outputs", faults=(what,), exit_code=EXIT_GATE)


def _checked(name: str, each: Replayed) -> Checked:
    title = f"{name} on {each.provider}"
    if each.skipped:
        return Checked(title, each.skipped, skipped=True)
    metrics = each.metrics
    return Checked(
        title,
        f"{metrics['points']} golden points within tolerance, largest error "
        f"{metrics['max_abs']:.1e}, worst cosine {metrics['cosine_min']:.5f}",
        tuple(f"{finding.what} ({finding.where})" for finding in each.findings),
        exit_code=EXIT_GATE,
    )


class _Context:
    """What the validate step may touch here: two folders to read, one to write."""

    def __init__(self, params: Any, where: str, scratch: Path, inputs: dict[str, Path]) -> None:
        self.params = params
        self.where = where
        self._scratch = scratch
        self._inputs = inputs

    @property
    def scratch(self) -> Path:
        return self._scratch

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(self._inputs)

    def input(self, name: str) -> Path:
        return self._inputs[name]

    def output(self, name: str) -> Path:
        folder = self._scratch / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def load(self, entrypoint: Entrypoint) -> Callable[..., Any]:
        raise StepError(f"'{entrypoint.target}' is not in a release", where=self.where)

    def files(self, entrypoint: Entrypoint) -> tuple[tuple[str, Path], ...]:
        raise StepError(f"the data of '{entrypoint.target}' is not in a release", where=self.where)
