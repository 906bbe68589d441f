"""Report of a run: actions, results and failures of its steps."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from onnxbuild.core.action import Action, ActionResult
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.errors import EXIT_GATE, BuildError
from onnxbuild.core.graph import Step
from onnxbuild.core.step import Finding


@dataclass(frozen=True, slots=True)
class Failure:
    """Failure of a step, which then has no usable outputs."""

    step: str
    error: BuildError
    exit_code: int


@dataclass(slots=True)
class Report:
    """Report of a run.

    Attributes:
        actions: Step name -> what decided it, for every step whose inputs were known.
        results: Step name -> its result, for every step that has one (a failed gate's too).
        built: Names of the steps that ran, in the order they ended.
        cached: Names of the steps that hit.
        failures: In the order they were found.
        blocked: Step name -> the failed step that it needs.
        left_out: Steps that are not applicable, and those that need one of them.
    """

    actions: dict[str, Action] = field(default_factory=dict)
    results: dict[str, ActionResult] = field(default_factory=dict)
    built: list[str] = field(default_factory=list)
    cached: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    blocked: dict[str, str] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)

    def inputs_of(self, step: Step) -> dict[str, Artifact]:
        """Input name -> artifact: without optional ones that were left out."""
        return {
            key: self.results[ref.step].outputs[ref.output]
            for key, ref in step.inputs.items()
            if not (key in step.optional_inputs and ref.step in self.left_out)
        }

    def passed_of(self, steps: Sequence[str]) -> list[str]:
        """Return those of `steps` whose verdict is no failure."""
        failed = {failure.step for failure in self.failures}
        return [step for step in steps if step not in failed]

    def skipped(self, step: str) -> str:
        """Return why a step could not do its work on this machine; empty where it did.

        Its target or a tool is not here, so it ended well and says nothing of the model.
        """
        result = self.results.get(step)
        reason = result.metrics.get("skipped") if result is not None else None
        return reason if isinstance(reason, str) else ""

    @property
    def exit_code(self) -> int:
        """0 only if nothing failed; a failed step outranks a failed gate."""
        codes = [failure.exit_code for failure in self.failures]
        harder = [code for code in codes if code != EXIT_GATE]
        return harder[0] if harder else (codes[0] if codes else 0)


def gate_error(step: str, findings: Sequence[Finding]) -> BuildError | None:
    """Return the failure of a gate as the error that the run ends with: its first breach, and how many more there are.

    Returns: None if there is none.
    """
    if not findings:
        return None
    first, more = findings[0], len(findings) - 1
    what = first.what + (f" (and {more} more)" if more else "")
    error = BuildError(what, where=first.where or step, fix=first.fix)
    error.exit_code = EXIT_GATE
    return error
