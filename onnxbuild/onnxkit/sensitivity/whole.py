"""Pipelines one of whose components has gates: the cost of few bits in a node to the whole."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.core.target import CPU_TARGET
from onnxbuild.onnxkit.accuracy.user_metric import UserMetric
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.data.user_code import own_copy
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.pipelines.built_in import TOKENS, forced_logits
from onnxbuild.onnxkit.pipelines.calls import (
    PipelineRun,
    RunPipeline,
    by_name,
    parts_of,
    runtime_callers,
)
from onnxbuild.onnxkit.pipelines.parts import read_values
from onnxbuild.onnxkit.sensitivity.dynamic_rounding import GATES
from onnxbuild.onnxkit.sensitivity.losses import LogitsDivergence
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session

if TYPE_CHECKING:
    from onnxbuild.onnxkit.pipelines.parts import Arrays


class GatedWhole:
    """A pipeline on the samples of PyTorch's run of it, the input `reference`.

    Greedy decoding goes on with PyTorch's tokens, and its score is minus the mean KL divergence of the next token's
    distributions; other callables have the score of the user's metric.

    Args:
        whole: All components; those without gates are the inputs `model/COMPONENT`.
        component: The one with gates.
        gated: The folder of its model.
        metric: The user's; None for greedy decoding's own measure.
        samples: How many are run.
    """

    def __init__(
        self,
        context: StepContext,
        whole: RunPipeline,
        component: str,
        gated: Path,
        *,
        metric: Entrypoint | None,
        samples: int,
    ) -> None:
        reference = context.input("reference")
        self._whole = whole
        self._pipeline = PipelineRun(context, whole.run)
        others = {each.name: each.session for each in whole.parts if each.name != component}
        self._callers = runtime_callers(context, others, CPU_TARGET)
        self._component = component
        self._session = open_session(gated, lean=True, where=context.where)
        self._where = context.where
        points = zip(read_values(reference), read_reference(reference), strict=True)
        self._samples = [
            (sample, dict(point.outputs)) for sample, point in islice(points, samples)
        ]
        self._metric = None if metric is None else UserMetric(context, metric)
        self._divergence = LogitsDivergence(TOKENS)

    @property
    def items(self) -> int:
        """See Gated."""
        return len(self._samples)

    def run(self, gates: np.ndarray) -> tuple[list[np.ndarray], float | None]:
        """See Gated."""

        def call(feeds: dict[str, np.ndarray]) -> Arrays:
            return run_session(self._session, {**feeds, GATES: gates}, self._where)

        callers = by_name({**self._callers, self._component: call})
        parts = parts_of({each.name: each.inputs for each in self._whole.parts}, callers)
        if self._metric is None:
            logits = (
                forced_logits(self._whole.run, parts, sample, expected[TOKENS])
                for sample, expected in self._samples
            )
            outputs = [{TOKENS: np.stack(list(each), axis=1)} for each in logits]
            return [], self._divergence(outputs)
        outputs = [
            self._pipeline.outputs_of(parts, sample, number)
            for number, (sample, _) in enumerate(self._samples)
        ]
        return [], self._metric.score(outputs, [own_copy(each) for _, each in self._samples])
