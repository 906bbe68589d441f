"""Replay the golden inputs through a release's models, here and now, each in a fenced process."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxbuild.adapters.kernel import landlock
from onnxbuild.adapters.tally import Tally
from onnxbuild.core.errors import (
    EXIT_GATE,
    EXIT_NOT_REPRODUCIBLE,
    StepError,
    UsageError,
    did_you_mean,
)
from onnxbuild.core.ports import EventSink
from onnxbuild.onnxkit.bundles.manifest import Manifest, read_manifest
from onnxbuild.onnxkit.host.made_for import other_machine
from onnxbuild.plugins.bring import bring_plugins
from onnxbuild.processes.fenced_call import TIMEOUT_S
from onnxbuild.providers import is_known, provider_names
from onnxbuild.release_format.bundles import bundles_of
from onnxbuild.release_format.forms import following, read_json
from onnxbuild.release_format.layout import MANIFEST
from onnxbuild.release_format.package_records import package_records
from onnxbuild.release_format.released import Released
from onnxbuild.verification.allowed import holds_compiled_nodes
from onnxbuild.verification.fenced_replay import UNTRUSTED, attempt
from onnxbuild.verification.package_runs import replay_packages
from onnxbuild.verification.replay_context import Replayed, ReplayRequest
from onnxbuild.verification.runtimes import RUNTIMES, RefusedError
from onnxbuild.verification.verify import Checked


def replay(asked: ReplayRequest) -> Iterator[Replayed]:
    """Run a bundle on every target that it was validated on and that is at hand.

    Raises:
        NotReproducibleError: The manifest can't be followed.
        StepError: A provider that was asked for does not load, or refuses the model.
    """
    place = f"{asked.bundle.name}/{MANIFEST}"
    with following(place):
        manifest = read_manifest(read_json((asked.bundle / MANIFEST).read_bytes()))
        names = list(asked.providers or manifest.validation)
        if not names:
            raise ValueError("it names no target that the model was validated on")
        refused = _refused(manifest, asked)
    for number, provider in enumerate(names):
        scratch = asked.scratch / str(number)
        scratch.mkdir()
        is_asked_for = provider in asked.providers
        with following(place):
            reason = _elsewhere(manifest, provider) or refused
            try:
                run = RUNTIMES[manifest.runtime](manifest, provider, asked, scratch)
            except RefusedError as error:
                reason = reason or str(error)
            except StepError as error:
                if is_asked_for:
                    raise
                reason = reason or error.what
        if reason:
            yield Replayed(manifest.bundle, provider, {}, skipped=reason)
        else:
            yield attempt(
                run, manifest.bundle, provider, asked_for=is_asked_for, on_cpu=run.on_cpu
            )


def _elsewhere(manifest: Manifest, provider: str) -> str:
    """Return why a bundle that is made for one target is not run on another; empty if it may be."""
    if manifest.providers is not None or provider in manifest.validation:
        return ""
    return f"it runs on {', '.join(manifest.validation)} alone"


def _refused(manifest: Manifest, asked: ReplayRequest) -> str:
    """Return why a bundle is not run on this machine, on no target; empty if it may be."""
    if manifest.made_for is not None and (reason := other_machine(manifest.made_for)):
        return reason
    model = asked.bundle / manifest.file
    is_program = manifest.runs_code or holds_compiled_nodes(model)
    return UNTRUSTED if is_program and not asked.trusted else ""


def check_providers(providers: Iterable[str]) -> None:
    """Refuse what is no short name of an execution provider, those of installed plug-ins among them.

    A project's own plug-ins do not count: a release is verified without any project.

    Raises:
        UsageError: One is none.
    """
    bring_plugins()
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
    events: Sequence[EventSink] = (),
) -> Iterator[Checked]:
    """Replay every bundle of a release, and run its packages.

    Args:
        release: Its files are what its checksums say.
        providers: Short names; empty for those that each manifest names.
        trust_programs: Run PyTorch's programs, engines and compiled models, too. They may do what
            any program may that the kernel fences in.
        timeout_s: Wall time that each may take.
        events: Take how many of them were run.

    Raises:
        UsageError: A provider has no such name.
        StepError: See `replay`.
        NotReproducibleError: A manifest can't be followed.
    """
    check_providers(providers)
    if landlock.abi() == 0:
        detail = f"no Landlock ({landlock.reason_not()}): what the models do is not fenced in"
        yield Checked("fence", detail, skipped=True)
    ran = 0
    bundles, packages = bundles_of(release.about), [*package_records(release.about)]
    tally = Tally(events, "golden outputs", len(bundles) + len(packages), "runs")
    with tempfile.TemporaryDirectory(prefix="onnxbuild-replay-") as folder:
        for number, (name, entry) in enumerate(bundles.items()):
            tally.add(0, name)
            asked = ReplayRequest(
                bundle=release.folder / entry["bundle"],
                golden=release.folder / entry["golden"],
                scratch=Path(folder) / str(number),
                providers=providers,
                trusted=trust_programs,
                timeout_s=timeout_s,
            )
            asked.scratch.mkdir()
            for each in replay(asked):
                ran += not each.skipped
                yield _checked(name, each)
            tally.add(1)
        scratch = Path(folder) / "packages"
        scratch.mkdir()
        tally.add(0, "packages")
        for name, each in replay_packages(release, scratch, timeout_s, trusted=trust_programs):
            yield _checked(name, each)
            tally.add(1)
    tally.end()
    if not ran:
        what = "nothing that the release names could be run here"
        yield Checked("golden outputs", faults=(what,), exit_code=EXIT_GATE)


def _checked(name: str, each: Replayed) -> Checked:
    title = f"{name} on {each.provider}" if each.provider else name
    if each.skipped:
        return Checked(title, each.skipped, skipped=True)
    if each.failed:
        return Checked(title, faults=(each.failed,), exit_code=EXIT_NOT_REPRODUCIBLE)
    findings = tuple(f"{finding.what} ({finding.where})" for finding in each.findings)
    if findings:
        return Checked(title, faults=findings, exit_code=EXIT_GATE)
    metrics = each.metrics
    return Checked(title, f"{metrics['points']} golden points within tolerance{_shown(metrics)}")


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
