"""Round weights to 8 bits so that each rounding makes up for those before it (GPTQ)."""

from dataclasses import dataclass

from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.calibrate.channel_statistics import budget_bytes, passes
from onnxbuild.onnxkit.data.calibration_data import DataParams
from onnxbuild.onnxkit.data.feeds import FeedCache
from onnxbuild.onnxkit.data.recorded_calls import OPTIONAL_CALLS
from onnxbuild.onnxkit.host.progress import report
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.linear_nodes import Constants, by_activation, linear_nodes
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.onnxkit.optimize.held_constants import folded_constants
from onnxbuild.onnxkit.sessions.calibration_feeds import calibration_feeds


@dataclass(frozen=True, slots=True)
class RoundParams(DataParams):
    """Parameters of the rounding.

    Attributes:
        levels: The greatest integer that the quantizer will use: 127, or 64 with a reduced range.
        per_channel: Whether it will use a scale an output.
        pairs: Whether it bounds neighbours together; `levels` is 127 then.
    """

    levels: int = 127
    per_channel: bool = True
    pairs: bool = False


def run(context: StepContext) -> Outcome:
    """Write the model, still in fp32, every matrix in whole multiples of the quantizer's scale.

    Raises:
        StepError: The data yields nothing, or not what the recipe declares, or a value is NaN.
    """
    from onnxbuild.onnxkit.calibrate.channel_statistics import measure_moments
    from onnxbuild.onnxkit.quantize.gptq import compensating_factor, round_compensated

    params: RoundParams = context.params
    source = params.source
    model = load_model(folded_constants(context), weights="mapped")
    constants = Constants(model, spill=context.scratch / "rounded")
    groups = by_activation(linear_nodes(model))
    channels = {name: linears[0].channels for name, linears in groups.items()}
    kept_feeds = FeedCache(context.scratch / "feeds")
    samples = sum(1 for _ in kept_feeds.keep(calibration_feeds(context, source, params.samples)))
    if samples == 0:
        raise source.nothing(params.samples, context.where)
    budget = budget_bytes(model)
    rounded, matrices = 0, sum(map(len, groups.values()))
    for number, group in enumerate(passes(channels, budget)):
        moments = measure_moments(
            load_model(folded_constants(context), weights="mapped"),
            group,
            kept_feeds,
            scratch=context.scratch / f"probed-{number}",
            where=context.where,
        )
        for name in group:
            order, factor = compensating_factor(moments.pop(name))
            for linear in groups[name]:
                matrix = round_compensated(
                    constants.matrix(linear),
                    order,
                    factor,
                    levels=params.levels,
                    per_channel=params.per_channel,
                    pairs=params.pairs,
                )
                constants.replace_matrix(linear, matrix)
                rounded += 1
                report(rounded, matrices, "weights")
    canonicalize(model)
    save_model(model, context.output("model"))
    return Outcome(metrics={"samples": samples, "rounded": rounded})


KIND = StepKind(
    name="round-weights",
    version=5,
    params=RoundParams,
    inputs=("model", OPTIONAL_CALLS),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy", "torch"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: (params.data,),
)
