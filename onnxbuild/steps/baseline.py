"""Run the fp32 model over the user's data: the vectors that variants are compared with."""

from dataclasses import dataclass

from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.sample_outputs import (
    data_of,
    projection_of,
    read_vectors,
    sample_vectors,
    write_vectors,
)
from onnxbuild.onnxkit.sessions.open import open_session

_ONE_NUMBER = (
    "`fidelity` compares one number a sample, whose cosine is 1 or -1 however large the error is: go by its "
    "SQNR (`goal: {sqnr_db: ...}`), or by `evaluate`"
)


@dataclass(frozen=True, slots=True)
class BaselineParams:
    """Parameters of a baseline.

    Attributes:
        data: A callable that yields feeds: input name -> array.
        project: A callable: (outputs, feeds) -> (samples, ...); None takes all outputs.
        inputs: What the recipe declares.
        samples: Items of the data that are used; 0 for all.
    """

    data: Entrypoint
    project: Entrypoint | None
    inputs: tuple[DummyInput, ...]
    samples: int


def run(context: StepContext) -> Outcome:
    """Write the vectors.

    Raises:
        StepError: The data yields nothing, or not what the recipe declares; see `sample_vectors`.
    """
    params: BaselineParams = context.params
    samples = sample_vectors(
        open_session(context.input("model"), where=context.where),
        data_of(context, params.data, params.inputs, params.samples),
        project=projection_of(context, params.project),
        target=params.project.target if params.project else "",
        where=context.where,
    )
    count = write_vectors(context.output("vectors"), (each.vector for each in samples))
    sizes = {each.size for each in read_vectors(context.output("vectors"))}
    return Outcome(metrics={"samples": count}, notes=(_ONE_NUMBER,) if sizes == {1} else ())


KIND = StepKind(
    name="baseline",
    version=3,
    params=BaselineParams,
    inputs=("model",),
    outputs={"vectors": "vectors"},
    toolchain=("onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: (params.data, *((params.project,) if params.project else ())),
)
