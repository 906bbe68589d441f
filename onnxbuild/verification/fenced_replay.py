"""A step run on a release's files in a fenced process, and what it says, taken with care."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.adapters.toolchain.npm_environments import look_here
from onnxbuild.adapters.toolchain.tools import installed_headers
from onnxbuild.core.environment import Interpreter
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.step import Finding
from onnxbuild.core.target import environment_of
from onnxbuild.processes.fenced_call import TIMEOUT_S, call_fenced
from onnxbuild.release_format.forms import printable
from onnxbuild.verification.replay_context import Replayed

UNTRUSTED = (
    "a program of PyTorch, a provider's engine or cache, a compiled model, a library of custom operators, or a "
    "kind of bundle that this onnxbuild does not know may do what any program may: with --trust-programs it is run, if you trust "
    "who made the release (its signature: --key)"
)
_JUDGE = "onnxbuild.verification.replay_child:judge"
_MEASURES = ("max_abs", "cosine_min", "equal_min")


@dataclass(frozen=True, slots=True)
class Judged:
    """Verdict of a step on a model.

    Attributes:
        metrics: `points`, how many golden points there were; the worst of each measure, None where
            nothing could be compared.
        findings: Breaches of the tolerances.
        skipped: Why the model was not run; empty if it was.
    """

    metrics: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Replay:
    """One run of a step on a release's files.

    Attributes:
        kind: The step's.
        params: Its parameters.
        where: `recipe:variant`, for messages.
        inputs: Name -> file or folder.
        readable: All that it may read besides installed software.
        scratch: All that it may write to; made here.
        timeout_s: Wall time that it may take.
        on_cpu: It runs on the CPU.
        libraries: Of custom operators, which its sessions register.
        plugins: Distributions whose execution providers it runs on.
    """

    kind: str
    params: Any
    where: str
    inputs: Mapping[str, Path]
    readable: Iterable[Path]
    scratch: Path
    timeout_s: float = TIMEOUT_S
    on_cpu: bool = False
    libraries: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()

    def run(self) -> Judged:
        """Run it.

        Raises:
            StepError: The step's; or its process died, took too long, or answered nonsense.
        """
        headers = installed_headers()
        node = _node_of(self.params)
        job = {
            "kind": self.kind,
            "params": to_json(self.params),
            "where": self.where,
            "inputs": {name: str(path.absolute()) for name, path in self.inputs.items()},
            "libraries": list(self.libraries),
            "plugins": list(self.plugins),
            "headers": headers or "",
            "interpreter": None if node is None else to_json(node),
        }
        self.scratch.mkdir()
        try:
            answer = call_fenced(
                _JUDGE,
                job,
                readable=(
                    *self.readable,
                    *(() if headers is None else (Path(headers),)),
                    *(() if node is None else map(Path, node.folders)),
                ),
                scratch=self.scratch,
                where=self.where,
                timeout_s=self.timeout_s,
            )
            return _judged(answer)
        except StepError as error:
            parts = {"where": printable(error.where), "fix": printable(error.fix)}
            raise StepError(printable(error.what), **parts) from error


def _node_of(params: Any) -> Interpreter | None:
    """Return where Node and npm's packages are, of a step that runs something by them; else None."""
    environment = environment_of(params)
    return look_here(environment) if environment is not None and environment.npm else None


def attempt(
    run: Replay, variant: str, provider: str, *, asked_for: bool, on_cpu: bool
) -> Replayed:
    """Run a bundle on a provider; return what became of it.

    Args:
        asked_for: The user named it: that it is not there is an error of the command.
        on_cpu: It is the CPU, which is there everywhere: a model that does not run there fails.

    Raises:
        StepError: A provider that was asked for does not load, or refuses the model.
    """
    try:
        judged = run.run()
    except StepError as error:
        if on_cpu:
            return Replayed(variant, provider, {}, failed=error.what)
        if asked_for:
            raise
        return Replayed(variant, provider, {}, skipped=error.what)
    return Replayed(variant, provider, judged.metrics, judged.findings, judged.skipped)


def _judged(answer: Any) -> Judged:
    """The answer of a process that a model may have taken over.

    Raises:
        StepError: It is no outcome of a step that judges.
    """
    try:
        metrics = dict(answer["metrics"])
        found = tuple(Finding(str(what), str(where)) for what, where in answer["findings"])
    except (LookupError, TypeError, ValueError):
        metrics, found = {}, ()
    if "skipped" in metrics:
        return Judged({}, found, str(metrics["skipped"]))
    points, *worst = (metrics.get(name) for name in ("points", *_MEASURES))
    if type(points) is not int or points < 1 or not (found or _are_measures(*worst)):
        raise StepError("its process gave no verdict that can be read")
    return Judged(metrics, found)


def _are_measures(max_abs: object, cosine: object, equal: object) -> bool:
    """Return whether outputs were compared: of floats by error and cosine, of other types by `equal`."""
    if max_abs is None and cosine is None:
        return _is_number(equal)
    return _is_number(max_abs) and _is_number(cosine) and (equal is None or _is_number(equal))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
